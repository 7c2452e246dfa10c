"""`OpenAiChatModel`: a model behind an endpoint that speaks OpenAI's chat completions.

Which model is used where is decided in `choice`; how a conversation looks on the wire, in `messages` and `completion`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from goat_mcp.agents.models.chat_completions import NotACompletion, openai_messages, read_completion
from goat_mcp.agents.options import EffortNames, ModelNames, ModelOptions
from goat_mcp.catalog.openai_format import function_definition
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ModelReply, ModelRequest
from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.client import WholeResponse

TRIES = 3
LONGEST_PAUSE_S = 30.0
"""An endpoint that wants more time than this before the next question gets none: the caller gets an error instead."""
_PATH = "/chat/completions"
_FIRST_PAUSE_S = 1.0


class _NamedModel(NamedTuple):
    """What the endpoint calls a model, and who said so."""

    id: str
    setting: str


class OpenAiChatModel:
    """Asks the endpoint of `agent.base_url`. Holds nothing of a conversation."""

    takes_tools = True

    def __init__(
        self,
        http: HttpClient,
        options: ModelOptions,
        *,
        references: SecretReferences | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._http = http
        self._options = options
        self._references = references or SecretReferences()
        self._sleep = sleep
        self._url = options.base_url if options.base_url.endswith(_PATH) else options.base_url + _PATH
        self._limit_names: dict[str, str] = {}

    async def reply(self, request: ModelRequest) -> ModelReply:
        """Raises `ToolError`: NOT_CONFIGURED for a setting to fix, NETWORK, RATE, MODEL for what may pass."""
        key = await anyio.to_thread.run_sync(self._key)  # a file, or a keyring that somebody has to unlock
        named = self._named(request.model)
        error_answer = None
        for attempt in range(TRIES):
            if error_answer is not None:
                await self._sleep(error_answer.retry_after_s or _FIRST_PAUSE_S * 2 ** (attempt - 1))
            answer = await self._ask(request, named, key)
            if answer.status == 200:
                return self._read(answer, named, key)
            error_answer = EndpointError.read(answer.status, answer.headers, answer.body, key)
            if not error_answer.passes or (error_answer.retry_after_s or 0) > LONGEST_PAUSE_S:
                break
        assert error_answer is not None
        raise error_answer.error(
            base_url=self._options.base_url, model=named.id, model_setting=named.setting, has_key=bool(key)
        )

    async def _ask(self, request: ModelRequest, named: _NamedModel, key: str) -> WholeResponse:
        answer = await self._send(self._body(request, named), key)
        if answer.status == 400 and named.id not in self._limit_names and takes_other_limit_name(answer.body):
            self._limit_names[named.id] = "max_completion_tokens"
            answer = await self._send(self._body(request, named), key)
        return answer

    async def _send(self, body: dict[str, Any], key: str) -> WholeResponse:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        try:
            return await self._http.send(
                "POST",
                self._url,
                headers=headers,
                content=json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
                allow_hosts=(urlsplit(self._url).netloc,),
                timeout_s=self._options.timeout_s,
            )
        except ToolError as failed:
            advice = "Ask the user to check agent.base_url, and that the endpoint runs."
            if (failed.facts or {}).get("timed_out"):
                advice = "Try again later; agent.timeout_s sets how long an answer may take."
            raise ToolError(failed.code, f"the model endpoint of agent.base_url: {failed.message}", advice) from None

    def _body(self, request: ModelRequest, named: _NamedModel) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": named.id,
            "messages": openai_messages(request),
            self._limit_names.get(named.id, "max_tokens"): request.max_tokens,
        }
        if request.tools:
            body["tools"] = [
                function_definition(tool.name, tool.description, tool.input_schema) for tool in request.tools
            ]
        if request.effort in EffortNames.model_fields:
            effort: str = getattr(self._options.reasoning_effort, request.effort)
            if effort:
                body["reasoning_effort"] = effort
        return body

    def _read(self, answer: WholeResponse, named: _NamedModel, key: str) -> ModelReply:
        try:
            if answer.truncated:
                raise NotACompletion(f"more than {len(answer.body)} bytes")
            return read_completion(answer.body)
        except NotACompletion as wrong:
            what = mask_key(str(wrong), key)
            raise ToolError(
                ErrorCode.MODEL,
                f"the model endpoint {self._options.base_url} sent no usable answer of {named.id!r}: it is {what}",
                "Check that agent.base_url speaks OpenAI's chat completions, or try again.",
            ) from None

    def _named(self, requested: str) -> _NamedModel:
        if requested and requested not in ModelNames.model_fields:
            return _NamedModel(requested, "the call's `model`")
        default = self._options.model
        for name in (requested, default):
            # The default may be one of those names too.
            if name in ModelNames.model_fields and (id := getattr(self._options.models, name)):
                return _NamedModel(id, f"agent.models.{name}")
        if default:
            return _NamedModel(default, "agent.model")
        where = f"agent.models.{requested} or agent.model" if requested else "agent.model"
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"no model of {self._options.base_url} is named: {where} is not set",
            f"Ask the user to set {where}; most endpoints list their models at {self._options.base_url}/models.",
        )

    def _key(self) -> str:
        try:
            key = self._references.secret(self._options.key.get_secret_value())
        except Unresolved as unresolved:
            raise ToolError(ErrorCode.NOT_CONFIGURED, f"agent.key: {unresolved}", "Ask the user to set it.") from None
        if not key.isascii() or not key.isprintable():
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                "agent.key holds characters that no key has (a line end, or letters beyond ASCII)",
                "Ask the user to set it again.",
            )
        return key


_PASSING = frozenset({408, 429, 500, 502, 503, 504, 529})
_UNKNOWN_MODEL = re.compile(
    r"invalid model|unknown model|model_not_found|model\b.*\b(not found|not exist)", re.I | re.S
)
_SAID_CHARS = 300
# LiteLLM without a database takes its master key only, and answers every other one with this.
_LITELLM_OTHER_KEY = "no_db_connection"
_OUT_OF_MONEY = "insufficient_quota"


@dataclass(frozen=True, slots=True)
class EndpointError:
    """An answer whose status is an error. Holds no key: the endpoint's text is cleared of it."""

    status: int
    message: str
    kind: str
    retry_after_s: float | None

    @classmethod
    def read(cls, status: int, headers: Mapping[str, str], body: bytes, key: str) -> EndpointError:
        message, kind = _error_text(body)
        return cls(status, mask_key(message, key)[:_SAID_CHARS], kind, _retry_after_s(headers))

    @property
    def passes(self) -> bool:
        """Whether the same question may be answered a little later."""
        return self.status in _PASSING and self.kind != _OUT_OF_MONEY

    def error(self, *, base_url: str, model: str, model_setting: str, has_key: bool) -> ToolError:
        """For the model and the person who set it up."""
        answered = f"the model endpoint {base_url} answered {self.status}"
        message = f": {self.message}" if self.message else ""
        if self.status in (401, 403) or self.kind == _LITELLM_OTHER_KEY:
            what = "it does not take the key of agent.key" if has_key else "it wants a key, and agent.key is not set"
            advice = "Ask the user to set agent.key to a valid key, best as a reference: ${NAME}."
            return ToolError(ErrorCode.NOT_CONFIGURED, f"{answered}: {what}{message}", advice)
        if self.status in (400, 404) and _UNKNOWN_MODEL.search(self.message):
            return ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"{answered}: it has no model {model!r}, which {model_setting} names{message}",
                f"Set {model_setting} to a model it has; most list theirs at {base_url}/models.",
            )
        if self.status == 404 or 300 <= self.status < 400 or self.status == 405:
            return ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"{answered}: there are no chat completions there{message}",
                "Check agent.base_url; it mostly ends with /v1.",
            )
        if self.status == 429:
            when = f" for {self.retry_after_s:.0f} s" if self.retry_after_s else ""
            return ToolError(
                ErrorCode.RATE, f"{answered}, it takes no more questions{when}{message}", "Try again later."
            )
        if self.status >= 500:
            # LiteLLM's answer to a question without a key is a failure of its own.
            advice = "" if has_key else " It was sent no key: agent.key is not set."
            return ToolError(
                ErrorCode.MODEL, f"{answered}{message}", f"Try again later, or look at the endpoint's own log.{advice}"
            )
        return ToolError(
            ErrorCode.MODEL,
            f"{answered}, it refuses the question{message}",
            f"Check what model {model!r} takes: length of the conversation, images, agent.max_tokens.",
        )


def takes_other_limit_name(body: bytes) -> bool:
    """OpenAI's newer models know the limit of an answer by another name than `max_tokens` only, and say so."""
    return b"max_completion_tokens" in body


def mask_key(text: str, key: str) -> str:
    """An endpoint's text without the key that it may repeat."""
    return text.replace(key, "(the key)") if key else text


def _error_text(body: bytes) -> tuple[str, str]:
    """The message, on one line, and the endpoint's word for the kind of error."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(body[: _SAID_CHARS * 4].decode("utf-8", "replace").split()), ""
    error: Any = cast("dict[str, Any]", answer).get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return " ".join(str(error).split()), ""
    members = cast("dict[str, Any]", error)
    message = members.get("message") or members.get("detail") or json.dumps(members, ensure_ascii=False)
    kinds = [str(members.get(name) or "") for name in ("code", "type")]
    kind = next((kind for kind in kinds if kind in (_OUT_OF_MONEY, _LITELLM_OTHER_KEY)), "")
    if "model_not_found" in kinds:
        message = f"{message} (model_not_found)"
    return " ".join(str(message).split()), kind


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds, or a date. Source: RFC 9110, section 10.2.3."""
    given = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time())
    except (ValueError, IndexError, TypeError):
        return None
