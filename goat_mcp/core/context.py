"""What one call knows about itself and its caller."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from goat_mcp.core.calling_client import CallingClient
from goat_mcp.core.elicitation import Ask, nobody_to_ask
from goat_mcp.core.model import CallingModel, ChatModel
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import LOCAL, NO_LIMITS, Rights
from goat_mcp.core.spec import ToolSpec

T = TypeVar("T")

WAIT_LIMIT_S = 45.0
"""No call waits longer than this: hosts give up at 60 s (contract: tools.md, "Time")."""


class Progress(Protocol):
    """Report to the caller how far the call is. Values rise; the call goes on if nobody listens.

    `meta` is the `_meta` of an upstream's report, as far as it is for the caller (REL-5).
    """

    async def __call__(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None: ...


Afterwards = Callable[[], Awaitable[None]]
"""What is done once the client has its answer."""
DoAfterwards = Callable[[str, Afterwards], bool]
"""Of the call with this id. False if nothing is done later for it: then whoever asks does it."""


def nothing_afterwards(call_id: str, work: Afterwards) -> bool:
    """Of a call whose client waits for all of it."""
    return False


AnswerNow = Callable[[ToolResult], Awaitable[None]]
"""Gives the client its answer while the call goes on."""
LeaveClient = Callable[[str], AnswerNow | None]
"""From now on the client of the call with this id waits no more: what is returned answers it, and has to be called.
None if it cannot be answered now, or nobody waits: then nothing has changed."""


def stay_with_client(call_id: str) -> AnswerNow | None:
    """Of a call whose caller waits for its result, however long that takes."""
    return None


def attended() -> bool:
    """Of a call whose client waits for it: it has not been left."""
    return False


class Elsewhere(Protocol):
    """Held while others work on the call."""

    def __call__(self, runs: ToolSpec | None = None, /) -> AbstractContextManager[None]:
        """`runs`: the tool, if an upstream runs it now. Such a call may become a background task."""
        ...


def here(runs: ToolSpec | None = None, /) -> AbstractContextManager[None]:
    """Of a call that is counted wherever it is worked on."""
    return nullcontext()


class CloseQuestion(Protocol):
    """Lets no other process go on with the call by an answer of its client. False if one has done it already."""

    async def __call__(self) -> bool: ...


async def nowhere_else() -> bool:
    """Of a call that is in this process only."""
    return True


async def no_progress(
    done: float, total: float | None = None, message: str | None = None, *, meta: Mapping[str, Any] | None = None
) -> None:
    """The reporter of a call whose client sent no progress token."""


@dataclass(frozen=True)
class Restart:
    """Of the call `call_id`, and of none that it makes in turn. `record` is what it wrote down before (see `Form`)."""

    call_id: str
    record: str


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """Facts of one call, and the ways to reach its caller.

    `session_key` scopes short-lived state (read state, shell directory), `principal` scopes what
    outlives a session (tasks); see design D6. `ask` reaches the person behind the client, `host_model` the client's
    own model (None if it offers none). `client` is the client as an upstream may ask and notify it. `rights`
    narrow the calls of an agent. `overrides` are the settings this session has changed (tool Config), by key. `meta`
    is the `_meta` of the client's request as it came; only an upstream call has a use for it. `while_elsewhere` is held
    while an upstream works on the call: other calls run meanwhile. `model` is set if one of our own agents calls
    (see `calling_model`).
    """

    call_id: str
    session_key: str = "local"
    principal: str = LOCAL
    progress: Progress = no_progress
    wants_progress: bool = False
    ask: Ask = nobody_to_ask
    host_model: ChatModel | None = None
    model: CallingModel | None = None
    client: CallingClient | None = None
    client_name: str = ""
    """What the client calls itself, with its version, in its own words: for the record of calls, and for nothing that
    is decided."""
    rights: Rights = NO_LIMITS
    overrides: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    script_sha256: str = ""
    """Of the script file that was judged (see `Access`)."""
    handler: str = ""
    """The state of the tool's own files when the call was judged (see `Access`)."""
    message: Mapping[str, Any] | None = None
    """The assistant's message that holds this call, where it is known: in our own agents, and in a program that embeds
    us (Goondan `ToolContext.message`)."""
    model_call_id: str = ""
    """The id that the model gave the call, where it is known. Models repeat theirs; `call_id` is ours, and unique."""
    started_at_s: float = field(default_factory=time.monotonic)
    while_elsewhere: Elsewhere = here
    leave_client: LeaveClient = stay_with_client
    is_left: Callable[[], bool] = attended
    """Whether the call goes on as a background task: nobody can be asked."""
    do_afterwards: DoAfterwards = nothing_afterwards
    """Leaves for later what the client need not wait for."""
    reads_tasks_of: str = ""
    """The id of the call that a task of an upstream may be the answer to (SEP-2663): of none that it makes in turn."""
    holds_tasks: bool = False
    """Whether the call itself waits for the end of an upstream's task, for a caller that knows none."""
    restart: Restart | None = None
    """If another process may have to start the call again after a question."""
    close_question: CloseQuestion = nowhere_else
    """Called when a question to the client was decided elsewhere."""
    client_waits_since_s: Callable[[], float] | None = None
    """Where one call is several requests of a client, when the present one came."""

    @property
    def client_session(self) -> str:
        """The session of the client, also for a call that an agent of it makes in a session of its own."""
        return self.rights.client_session or self.session_key

    def changed(self, **members: Any) -> ToolContext:
        """As `dataclasses.replace`, in a tenth of its time: every call has its context changed."""
        other = object.__new__(ToolContext)
        other.__dict__.update(self.__dict__, **members)
        return other

    def wait_left_s(self, limit_s: float = WAIT_LIMIT_S) -> float:
        """Seconds this call may still wait before it has to answer; never negative."""
        since_s = self.started_at_s if self.client_waits_since_s is None else self.client_waits_since_s()
        return max(0.0, limit_s - (time.monotonic() - since_s))

    def setting(self, key: str, default: T) -> T:
        """The setting `key` as this session changed it, else `default`. Values were checked when they were set."""
        return self.overrides.get(key, default)


MODEL_META_KEY = "goat-mcp/model"
_CODEX_META_KEY = "x-codex-turn-metadata"
_MAX_NAME_CHARS = 200


def calling_model(ctx: ToolContext) -> CallingModel | None:
    """Which language model made a call, if known: our own agents say it, and few clients do.

    MCP has no field for it. Codex sends it with each call, in `_meta["x-codex-turn-metadata"]`; any other client may
    send `_meta["goat-mcp/model"]`. A client can say anything, so only the wording of a result may depend on it.
    """
    if ctx.model is not None:
        return ctx.model
    name = _text(ctx.meta.get(MODEL_META_KEY)) or _text(_members(ctx.meta.get(_CODEX_META_KEY)).get("model"))
    return CallingModel((name,)) if name else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= _MAX_NAME_CHARS else ""


def _members(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
