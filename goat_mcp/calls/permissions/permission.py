"""The permission stage of the pipeline: it decides, and if the decision is to ask, asks whom `approval` names."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from shlex import join
from typing import NamedTuple

from goat_mcp.calls.approvals.asking import AsksPerson, FormOnly
from goat_mcp.calls.approvals.call_request import request_for_call
from goat_mcp.calls.approvals.record import Verdict
from goat_mcp.calls.approvals.scopes import WORKSPACE, choices_for
from goat_mcp.calls.permissions.approval import narrowest_rules
from goat_mcp.calls.permissions.decide import Decision, decide
from goat_mcp.calls.permissions.mode import Approval, Effect, Mode
from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.calls.permissions.rule import Call, CommandSpecifier, Rule, parse_rule
from goat_mcp.calls.permissions.rule_set import WRITES_OF_COMMANDS, CurrentRules, RuleSet, families_of
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.core import platform
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import NOTES_FOLDER, NOTES_TOOL
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.spec import ToolSpec
from goat_mcp.files.workspace.protected import git_directory_reason, protected_reason
from goat_mcp.files.workspace.roots import has_other_meaning, split_names

Preview = Callable[[], Awaitable[str]]
"""A unified diff of what a call would change; empty if it changes no files."""
_SHORT_COMMAND_CHARS = 1000
_STRICTER = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}


def _is_confined() -> str:
    return ""


def _no_sandbox() -> bool:
    return False


def _nowhere(ctx: ToolContext, workdir: str) -> str:
    return ""


def _nothing_listed(ctx: ToolContext) -> Iterable[ToolSpec]:
    return ()


async def no_preview() -> str:
    return ""


class _Merged(NamedTuple):
    """The rules of the settings together with those granted to a session."""

    settings: RuleSet
    granted: tuple[Rule, ...]
    all: RuleSet


@dataclass(frozen=True)
class Permission:
    """Rules, mode and approval of one gateway."""

    rules: CurrentRules = field(default_factory=RuleSet)
    modes: SessionModes = field(default_factory=SessionModes)
    approval: Approval = Approval.HOST
    roots: Callable[[], Sequence[Path]] = tuple
    """The workspace's directories: what is protected is judged below them, wherever they themselves lie."""
    remembered: RememberedRules | None = None
    why_unconfined: Callable[[], str] = _is_confined
    """Why commands would run without the sandbox that the settings want for them; empty if all is well."""
    shell_directory: Callable[[ToolContext, str], str] = _nowhere
    """Where a command of a call would begin, which may name a `workdir`."""
    keeps_commands_inside: Callable[[], bool] = _no_sandbox
    """Whether a sandbox keeps commands that run unasked inside the workspace, without network."""
    approvals: AsksPerson = field(default_factory=FormOnly)
    scope_id: str = ""
    """Of the workspace, for what is remembered about it."""
    redactor: Redactor = field(default_factory=Redactor)
    listed: Callable[[ToolContext], Iterable[ToolSpec]] = _nothing_listed
    """The tools that the caller sees."""
    rules_command: str = ""
    """The command that adds an allow rule to the settings these rules come from; empty if there is none."""
    _merged: dict[str, _Merged] = field(default_factory=dict[str, _Merged])

    def root_texts(self) -> tuple[str, ...]:
        return tuple(map(str, self.roots()))

    def looks_at_files(self, call: Call, ctx: ToolContext) -> bool:
        """Whether deciding about this call takes looking at what a command names, which may take a while."""
        if call.spec.rule_name != "Bash":
            return False
        rules = self.rules.now()
        command = str(call.arguments.get("command", ""))
        names_many = len(command) > _SHORT_COMMAND_CHARS or any(sign in command for sign in "*?[")
        return names_many or rules.deny.bind_commands_by_files or rules.ask.bind_commands_by_files

    def decide(self, call: Call, ctx: ToolContext) -> Decision:
        """What rules and mode say about a call."""
        session, settings_rules = ctx.client_session, self.rules.now()
        rules = self._with_granted(settings_rules, session, ctx.principal)
        # An agent's own mode may only narrow what its starter's session allows.
        modes = (self.modes.of(session), *map(Mode, ctx.rights.modes))
        if call.spec.rule_name in ctx.rights.granted:
            modes = (Mode.BYPASS,)  # it came with the agent, whom somebody allowed; rules still hold
        decision = max((decide(call, rules, mode) for mode in modes), key=lambda choice: _STRICTER[choice.effect])
        if decision.effect is Effect.DENY:
            return decision
        below = ctx.rights.writes_below
        for path in call.writes:
            if below and not PurePath(path).is_relative_to(below) and not self._is_note(call, path):
                return Decision(
                    Effect.DENY, "this agent's limits", by_rule=True, detail=f"it writes below {below} only"
                )
        for path in (*call.writes, *(call.asked if call.writes else ())):
            reason = self._protected(path, commits=False)
            if reason is not None and not _is_lifted(settings_rules, call, path):
                return Decision(Effect.ASK, f"protected: {reason}", by_rule=True, detail=path)
        if call.scripts and call.directory:
            asked = self._protected_for_commands(call, decision, settings_rules)
            if asked is not None:
                return asked
        if call.spec.rule_name == "Bash" and decision.effect is Effect.ALLOW and (reason := self.why_unconfined()):
            return Decision(Effect.ASK, f"commands run without a sandbox here: {reason}", by_rule=True)
        return decision

    def _is_note(self, call: Call, path: str) -> bool:
        """Notes belong to the project, in every checkout of it."""
        if call.spec.rule_name != NOTES_TOOL:
            return False
        return any(PurePath(path).is_relative_to(PurePath(root, NOTES_FOLDER)) for root in self.root_texts())

    async def settle(self, decision: Decision, call: Call, ctx: ToolContext, preview: Preview = no_preview) -> Decision:
        """The decision, with who allowed it. Who is asked sees the arguments, and what would change.

        Raises `ToolError`: PERMISSION, PLAN_MODE, or APPROVAL_PENDING.
        """
        if decision.effect is Effect.ALLOW:
            return decision
        if decision.effect is Effect.DENY:
            raise self._refused(decision, call)
        if self.approval is Approval.HOST and not decision.by_rule and ctx.rights.depth == 0:
            # The program that launched us shows its own dialog for whatever is not marked read-only (D8);
            # it never sees the calls of an agent that runs in here.
            return Decision(Effect.ALLOW, f"{decision.reason}, left to the host", decided_by="host")
        if self.approval is not Approval.DENY or decision.by_rule:
            if not decision.by_rule and (granted := await self._granted_elsewhere(call, ctx)) is not None:
                return granted
            choices = choices_for(
                call,
                narrowest_rules(call),
                asked_by_rule=decision.by_rule,
                listed=lambda: self.listed(ctx),
                is_confined=self.keeps_commands_inside(),
                redactor=self.redactor,
            )
            request = request_for_call(
                call,
                decision.explanation,
                ctx,
                choices=choices,
                diff=await preview(),
                scope_id=self.scope_id,
                redactor=self.redactor,
            )
            try:
                verdict = await self.approvals.ask(request, ctx)
            except ToolError as pending:
                pending.suggestion = f"{pending.suggestion} {self._could_lift(decision, call)}"
                raise
            if verdict is not None and verdict.approved:
                return self._allowed(verdict, decision, call, ctx)
            if verdict is not None:
                said = f": {verdict.reason}" if verdict.reason else ""
                raise ToolError(
                    ErrorCode.PERMISSION,
                    f"the user refused {call.spec.rule_name}{said}",
                    "Follow what they said." if said else "Ask the user how to go on.",
                    facts={"tool": call.spec.rule_name},
                    interrupts=True,
                )
        raise _denied(
            call,
            f"{call.spec.rule_name} needs an approval ({decision.explanation}) and nobody could be asked",
            self._could_lift(decision, call),
        )

    async def _granted_elsewhere(self, call: Call, ctx: ToolContext) -> Decision | None:
        """The decision that what a person granted this session in another process makes possible."""
        for verdict, directory in await self.approvals.granted(ctx):
            self._grant(verdict, directory, ctx)
        decision = self.decide(call, ctx)
        return decision if decision.effect is Effect.ALLOW else None

    def _allowed(self, verdict: Verdict, decision: Decision, call: Call, ctx: ToolContext) -> Decision:
        how, shown = "once", ", ".join(verdict.rules)
        if verdict.rules and not verdict.remember:
            self._grant(verdict, call.directory, ctx)
            how = f"for this session with the rule {shown}"
        elif verdict.rules and self.remembered is not None:
            known = {(rule.text, rule.directory) for rule in self.remembered.of(ctx.principal)}
            new = [text for text in verdict.rules if (text, call.directory) not in known]
            try:
                if new:  # whoever decides in the queue has written it down already
                    self.remembered.add(ctx.principal, new, call.directory)
                how = f"always, with the rule {shown}"
            except OSError as problem:
                how = f"once; the rule could not be written down: {problem.strerror}"
        return Decision(Effect.ALLOW, f"{decision.reason}, allowed {how} by the user", decided_by="user")

    def _grant(self, verdict: Verdict, directory: str, ctx: ToolContext) -> None:
        if verdict.scope == WORKSPACE:
            directory = ""  # the sandbox is the same everywhere in it
        granted = [parse_rule(text, origin="granted to this session") for text in verdict.rules]
        self.modes.grant(ctx.client_session, [replace(rule, directory=directory) for rule in granted])

    def _refused(self, decision: Decision, call: Call) -> ToolError:
        if decision.reason == f"mode {Mode.PLAN.value}":
            return ToolError(
                ErrorCode.PLAN_MODE,
                f"{call.spec.rule_name} may change something, and this session only plans",
                "Finish the plan; the user ends plan mode.",
            )
        if decision.is_blocked:
            return ToolError(
                ErrorCode.BLOCKED,
                f"{call.spec.rule_name} is denied by {decision.explanation}",
                "Leave that command out; only the user can change the setting bash.blocked.",
                facts={"tool": call.spec.rule_name},
            )
        return _denied(
            call,
            f"{call.spec.rule_name} is denied by {decision.explanation}",
            "Choose another way; only the user can change the rule." if decision.by_rule else self._could_allow(call),
        )

    def _could_lift(self, decision: Decision, call: Call) -> str:
        """What the user can do about an ask that nobody answered."""
        if not decision.by_rule:
            return self._could_allow(call)
        if decision.rule is None and (rules := narrowest_rules(call)):
            how = self._command(rules) or f"permissions.allow: [{', '.join(rules)}] in the settings"
            return f"Tell the user: they can make this change themselves, or allow it with {how}."
        return "Tell the user; they can make this change themselves or change the rule."

    def _could_allow(self, call: Call) -> str:
        tool, rules = call.spec.rule_name, narrowest_rules(call)
        whole = f"the rule permissions.allow: [{tool}]"
        if rules in ((), (tool,)):
            command = self._command([tool])
            return f"The user can allow it with {f'{command}, or ' if command else ''}{whole}."
        if command := self._command(rules):
            return f"The user can allow it with {command}, or all calls of {tool} with {whole}."
        return f"The user can allow it with {whole} ({', '.join(rules)} allows no more than this)."

    def _command(self, rules: Sequence[str]) -> str:
        if platform.SYSTEM == "windows":
            # cmd.exe knows no single quotation marks, and within double ones PowerShell and cmd.exe replace these
            words = "" if any(set(rule) & set('"$`%') for rule in rules) else " ".join(f'"{rule}"' for rule in rules)
        else:
            words = join(rules)
        return f"`{self.rules_command} {words}`" if self.rules_command and words else ""

    def allows_without_asking(self, rule_name: str, session: str, principal: str) -> bool:
        """Whether a mode or a rule lets calls of this tool run without anybody's word."""
        if self.modes.of(session) is Mode.BYPASS:
            return True
        return next(self._with_granted(self.rules.now(), session, principal).allow.about(rule_name), None) is not None

    def _with_granted(self, rules: RuleSet, session: str, principal: str) -> RuleSet:
        """The settings' rules with what this person and this session were granted."""
        remembered = () if self.remembered is None else self.remembered.of(principal)
        granted = (*remembered, *self.modes.granted(session))
        if not granted:
            return rules
        known = self._merged.get(session)
        if known is None or known.settings is not rules or known.granted != granted:
            if len(self._merged) > 1000:
                self._merged.clear()
            known = self._merged[session] = _Merged(rules, granted, rules.allowing(granted))
        return known.all.now()

    def _protected_for_commands(self, call: Call, decision: Decision, settings_rules: RuleSet) -> Decision | None:
        """The same for what a command certainly writes, as far as it can be seen (R-FILE-9b)."""
        if decision.rule is not None and _names_this_command(settings_rules, decision.rule, call):
            return None
        from goat_mcp.calls.permissions.command_files import paths_written

        for path in paths_written(call):
            if (reason := self._protected(path, commits=True)) is None:
                continue
            # `cp a b` may write `b/a`, but not if `b` is no directory.
            above = str(PurePath(path).parent)
            named = (path,) if os.path.isdir(above) else (path, above)  # noqa: PTH112  # `Path` raises for long names
            if not any(_is_lifted(settings_rules, call, one, *WRITES_OF_COMMANDS) for one in named):
                return Decision(Effect.ASK, f"protected: {reason}", by_rule=True, detail=f"it writes {path}")
        return None

    def _protected(self, path: str, *, commits: bool) -> str | None:
        if has_other_meaning(split_names(path)):
            return "it may be any file"
        above = [str(root) for root in self.roots() if PurePath(path).is_relative_to(root)]
        # Of roots inside each other the outermost: naming `.git` as a root too makes it no less git's.
        return protected_reason(path, root=min(above, key=len, default=""), commits=commits) or git_directory_reason(
            path
        )


def _names_this_command(settings_rules: RuleSet, rule: Rule, call: Call) -> bool:
    """Whether the settings allow one command, word for word, and the call is no more than that."""
    specifier = rule.specifier
    return (
        isinstance(specifier, CommandSpecifier)
        and specifier.pattern.is_exact
        and len(call.script.commands) == 1
        and any(rule is one for one in settings_rules.allow.rules)
    )


def _is_lifted(settings_rules: RuleSet, call: Call, path: str, *more_families: str) -> bool:
    """Whether the settings allow a change of this very path (R-FILE-9)."""
    return any(
        specifier.pattern.is_path(path, call.roots)
        for _, specifier in settings_rules.allow.about_paths(*families_of(call.spec.rule_name), *more_families)
    )


def _denied(call: Call, message: str, suggestion: str) -> ToolError:
    return ToolError(ErrorCode.PERMISSION, message, suggestion, facts={"tool": call.spec.rule_name})
