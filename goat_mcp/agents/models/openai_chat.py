"""`OpenAiChatModel`: a model behind an endpoint that speaks OpenAI's chat completions.

Which model is used where is decided in `choice`; how a conversation looks on the wire, in `messages` and `completion`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from goat_mcp.agents.models.chat_completions import NotACompletion, openai_messages, read_completion
from goat_mcp.agents.models.endpoint_errors import EndpointError, mask_key, takes_other_limit_name
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
