"""What a model endpoint says when it does not answer, turned into errors that name the setting to fix."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError

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
