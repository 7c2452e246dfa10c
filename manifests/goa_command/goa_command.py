"""`goa_command__run`: a few commands of this server, parsed here and never given to a shell.

None of them changes what the settings say, and a mode that allows more wants the user's word (design D10).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.to_thread

from goat_mcp.calls.permissions.mode import Mode, allows_more, mode_chosen, words_of
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.commands.tasks.task import Task
from goat_mcp.core.elicitation import Form, Option, Question, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.review import MAX_DIFF_CHARS, described
from goat_mcp.files.changes.staged_files import FileChanges
from goat_mcp.files.memory import Memories
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host

_COMMANDS: Mapping[str, str] = {
    "help": "these commands",
    "mode": "the mode of this session",
    "mode NAME": "another one: plan, dontAsk, default (confirm) or acceptEdits",
    "tasks": "background tasks",
    "memory list": "notes for later sessions",
    "review list": "changes that wait for the user",
    "review show ID": "the diff of one of them",
    "config KEY": "a setting",
}
_MAX_CHARS = 1_000
_TITLE_CHARS = 200
_DECISION, _YES, _NO = "decision", "allow", "deny"


def build_handlers(host: Host) -> Mapping[str, Handler]:
    config = host.tool("Config")
    changes: FileChanges = host.tool("Write").changes
    memories = Memories(host.workspace, host.hides, changes.waiting_of)
    return {"run": Run(config, config.modes, host.tasks, changes, memories)}


@dataclass(frozen=True)
class Run:
    config: Any
    modes: SessionModes
    tasks: TaskManager
    changes: FileChanges
    memories: Memories

    async def __call__(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        words = _words(str(input["command"]))
        if words == ["help"]:
            return {"commands": dict(_COMMANDS)}
        if words == ["mode"]:
            return {"mode": self.modes.of(_session(ctx)).value}
        if len(words) == 2 and words[0] == "mode":
            return await self._change_mode(words, ctx)
        if words == ["tasks"]:
            known = await self.tasks.known(ctx.call.principal)
            return {"tasks": [_described(task) for task in known]}
        if words == ["memory", "list"]:
            find = partial(self.memories.newest_first, ctx.call.principal, ctx.call.session_key, base=ctx.workdir)
            found = await anyio.to_thread.run_sync(find)
            return {"memories": [memory.described() for memory in found]}
        if words == ["review", "list"]:
            waiting = await anyio.to_thread.run_sync(self.changes.review.oldest_first, ctx.call.principal)
            return {"waiting": [described(staged) for staged in waiting]}
        if len(words) == 3 and words[:2] == ["review", "show"]:
            diff = await anyio.to_thread.run_sync(self._diff, words[2], ctx.call.principal)
            return {"id": words[2], "diff": diff}
        if len(words) == 2 and words[0] == "config":
            asked = self.config.validate({"setting": words[1]})
            if asked.setting != words[1]:  # rules about the setting name it so
                raise ToolError(
                    ErrorCode.SETTING, f"no setting {words[1][:40]!r} by this name", f"It is config {asked.setting}."
                )
            read = await self.config.execute(asked, ctx.call)
            return dict(read.facts or {})
        raise _unknown(words)

    def _diff(self, id: str, principal: str) -> str:
        review = self.changes.review
        return review.diff(review.find(id, principal), MAX_DIFF_CHARS)

    async def _change_mode(self, words: Sequence[str], ctx: HandlerContext) -> Mapping[str, Any]:
        wanted = mode_chosen(words)
        if wanted is None:
            raise ToolError(
                ErrorCode.INPUT,
                f"command: no mode {words[1][:40]!r}",
                "There are plan, dontAsk, default and acceptEdits.",
            )
        session = _session(ctx)
        before = self.modes.of(session)
        if ctx.call.rights.depth:
            raise ToolError(ErrorCode.PERMISSION, "an agent does not change the mode", "Go on in the present one.")
        if wanted is Mode.BYPASS and before is not Mode.BYPASS:
            raise ToolError(
                ErrorCode.PERMISSION,
                f"no session can change to {wanted.value}",
                f"Only the user can: by starting goat-mcp with --mode {wanted.value}.",
            )
        if allows_more(before, wanted):
            await _have_allowed(before, wanted, ctx)
            before = self.modes.of(session)  # while they were asked, it may have become another
        self.modes.choose(session, wanted)
        return {"mode": wanted.value, "before": before.value}


def _described(task: Task) -> Mapping[str, str]:
    return {"id": task.id, "kind": task.work.kind, "status": str(task.status), "title": task.work.title[:_TITLE_CHARS]}


def _session(ctx: HandlerContext) -> str:
    return ctx.call.rights.client_session or ctx.call.session_key


async def _have_allowed(before: Mode, wanted: Mode, ctx: HandlerContext) -> None:
    """Raises `ToolError(PERMISSION)` unless the user says yes."""
    options = (Option(_YES, f"Change to {wanted.value}"), Option(_NO, f"Stay in {before.value}"))
    message = f"The model wants to change this session's mode from {before.value} to {wanted.value}, which allows more."
    answer = await ctx.call.ask(Form(message, (Question(_DECISION, "Decision", options=options, required=True),)))
    if answer.reply is Reply.ACCEPTED and answer.text(_DECISION) == _YES:
        return
    asked = answer.reply not in (Reply.UNAVAILABLE, Reply.UNANSWERED)
    raise ToolError(
        ErrorCode.PERMISSION,
        f"the user did not agree to {wanted.value}"
        if asked
        else f"{wanted.value} allows more, and nobody could be asked",
        f"Go on in {before.value}; the user can start goat-mcp with --mode {wanted.value}.",
    )


def _words(command: str) -> list[str]:
    if len(command) > _MAX_CHARS:
        raise ToolError(ErrorCode.INPUT, f"command: has {len(command)} characters", f"{_MAX_CHARS} are the most.")
    try:
        return words_of(command)
    except ValueError as problem:
        raise ToolError(ErrorCode.INPUT, f"command: {problem}", "Close the quotes.") from None


def _begun_alike(words: Sequence[str]) -> list[str]:
    """The command whose first word is nearly the first one, and of those with the most words."""
    firsts = {command.split()[0] for command in _COMMANDS}
    near = difflib.get_close_matches(words[0][:60] if words else "", firsts, n=1)
    return sorted((one for one in _COMMANDS if one.split()[0] in near), key=len)[-1:]


def _unknown(words: Sequence[str]) -> ToolError:
    near = difflib.get_close_matches(" ".join(words)[:60], _COMMANDS, n=1) or _begun_alike(words)
    hint = f"Did you mean {near[0]}? " if near else ""
    return ToolError(
        ErrorCode.INPUT,
        f"command: {' '.join(words)[:100]!r} is none of this server's",
        f"{hint}There are {', '.join(_COMMANDS)}. A shell's commands are Bash's.",
    )
