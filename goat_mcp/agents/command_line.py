"""The engine that hands an agent to another program, e.g. `claude -p`.

That program has tools of its own: they do not go through our pipeline, so no permission rule, hook, record or undo of
ours holds for them. Limits of an agent are passed on where `agent.command` has a place for them, and kept by the
program; a run whose limits it has no place for is refused. That is why this engine is used only where the user has
written the command line into the settings.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Literal

from goat_mcp.agents.command_report import CommandReport, ReportReader
from goat_mcp.agents.engine import Activity, AgentJob, AgentOutcome, AgentState, OnEvent, add_counts
from goat_mcp.agents.options import MAX_DEPTH, AgentOptions, EffortNames, ModelNames, Word, fill_words, placeholders_in
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.program import ProgramEnd, run_program
from goat_mcp.processes.program_lookup import program_on
from goat_mcp.processes.running_command import signal_name

DEPTH_VARIABLE = "GOAT_MCP_AGENT_DEPTH"
"""Tells a goat-mcp that such a program starts how deep it is: no agent starts itself without end."""
_NARROWING_MODES = ("plan", "dontAsk", "default")
"""The strictest first. The others would allow more than the program does by itself."""
_CONVERSATIONAL = frozenset(
    {"Agent", "AskUserQuestion", "ExitPlanMode", "TodoWrite", "TeamCreate", "SendMessage", "TeamDelete"}
)
"""Tools that reach no file, command or network by themselves: that an agent has none of ours is no limit to pass on."""
_COMPLAINT_CHARS = 2_000


class CommandLine:
    """`Engine` over `agent.command`. The prompt is its standard input, unless the command has a place for it."""

    outlives_calls = True
    resumes_from: Literal["messages", "token"] = "token"

    def __init__(self, options: AgentOptions, guard: ProcessGuard, environment: CommandEnvironment) -> None:
        self._options = options
        self._words: tuple[Word, ...] = options.command
        self._names = placeholders_in(options.command)
        self._guard = guard
        self._environment = environment

    @property
    def name(self) -> str:
        return f"the agent command {self._program}"

    @property
    def _program(self) -> str:
        return str(self._words[0])

    async def run(self, job: AgentJob, on_event: OnEvent) -> AgentOutcome:
        self._check_limits(job)
        prompt = "\n\n".join((job.prompt, *(await job.mail.between_turns() if job.mail is not None else ())))
        state = AgentState(turns=0, text="", resume_token=job.resume_token)
        while True:
            report = await self._once(job, prompt, state, on_event)
            state = _after(state, report)
            on_event(state)
            if report.out_of_turns:
                notice = f"it was stopped after {report.turns} turns with work left to do; resume lets it go on"
                return AgentOutcome(state, (notice, *self._notices(job)))
            if job.mail is None:
                return AgentOutcome(state, self._notices(job))
            if not state.resume_token:
                unread = "it cannot be resumed (agent.command), so mail that comes later is not read"
                return AgentOutcome(state, (unread, *self._notices(job)))
            more = await job.mail.when_idle(state.text)
            if not more:
                return AgentOutcome(state, self._notices(job))
            prompt = "\n\n".join(more)

    async def _once(self, job: AgentJob, prompt: str, before: AgentState, on_event: OnEvent) -> CommandReport:
        reader = ReportReader(lambda turn, what: on_event(Activity(before.turns + turn, what)))
        environment = await self._environment.build()
        environment[DEPTH_VARIABLE] = str(_depth() + job.ctx.rights.depth)
        program = self._find_program(environment["PATH"])
        full_prompt = prompt
        if job.system and "system" not in self._names and not before.resume_token:
            full_prompt = f"{job.system}\n\n{prompt}"
        words = fill_words(self._words, self._values(job, full_prompt, before.resume_token))

        def on_output(data: bytes) -> None:
            known = (reader.session, reader.turns)
            reader.feed(data)
            if known != (reader.session, reader.turns) and not reader.is_done:
                # Enough to resume one that is stopped in the middle.
                on_event(_after(before, CommandReport(reader.last_text, self._session(reader.session), reader.turns)))

        on_event(Activity(before.turns + 1, "thinking"))
        try:
            end = await run_program(
                [program, *words[1:]],
                data=b"" if "prompt" in self._names else full_prompt.encode("utf-8", "replace"),
                directory=job.directory,
                environment=environment,
                guard=self._guard,
                on_output=on_output,
                timeout_s=self._options.command_timeout_s,
            )
        except OSError as problem:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"agent.command cannot be started: {program}: {problem.strerror or problem}",
                "Ask the user to fix agent.command.",
            ) from None
        report = reader.end()
        self._check(end, report)
        return replace(report, session=self._session(report.session))

    def _session(self, session: str) -> str:
        """What a run can be resumed with; nothing where the command line has no place for it."""
        return session if "resume" in self._names else ""

    def _values(self, job: AgentJob, prompt: str, resume: str) -> dict[str, str]:
        rights = job.ctx.rights
        options = self._options
        return {
            "prompt": prompt,
            "system": job.system,
            "model": _configured_name(options.models, job.model),
            "effort": _configured_name(options.reasoning_effort, job.effort),
            "max_turns": str(job.max_turns),
            "resume": resume,
            "directory": str(job.directory),
            "allowed_tools": "" if rights.allowed is None else ",".join(sorted(rights.allowed)),
            "denied_tools": ",".join(sorted(rights.denied)),
            "mode": next((mode for mode in _NARROWING_MODES if mode in rights.modes), ""),
        }

    def _check_limits(self, job: AgentJob) -> None:
        """Refuse what the program could not be held to."""
        if _depth() + job.ctx.rights.depth > MAX_DEPTH:
            raise ToolError(
                ErrorCode.PERMISSION, f"agents are nested {MAX_DEPTH} deep already", "Do this part yourself."
            )
        if job.resume_token and "resume" not in self._names:
            raise self._lacks_placeholder("an agent that is resumed", "resume")
        rights = job.ctx.rights
        if rights.allowed is not None and not rights.allowed:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"this agent may use no tool at all, which {self._program} cannot be told",
                "Use another type of agent, or do this part yourself.",
            )
        if rights.allowed is not None and "allowed_tools" not in self._names:
            raise self._lacks_placeholder(f"an agent that may use {_listed(rights.allowed)} only", "allowed_tools")
        denied = rights.denied - _CONVERSATIONAL
        if rights.allowed is not None:
            denied &= rights.allowed
        if denied and "denied_tools" not in self._names:
            raise self._lacks_placeholder(f"an agent that may not use {_listed(denied)}", "denied_tools")
        if "plan" in rights.modes and "mode" not in self._names:
            raise self._lacks_placeholder("an agent in plan mode", "mode")

    def _lacks_placeholder(self, what: str, name: str) -> ToolError:
        return ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"agent.command has no {{{name}}}, so {self._program} cannot run {what}",
            f"Ask the user to add {{{name}}} to agent.command, or use another type of agent.",
        )

    def _notices(self, job: AgentJob) -> tuple[str, ...]:
        below = job.ctx.rights.writes_below
        return (
            (f"{self._program} was started in {below}; that it writes nowhere else is not enforced",) if below else ()
        )

    def _find_program(self, path: str) -> str:
        program = os.path.expanduser(self._program)  # noqa: PTH111  # a name is to stay a name
        found = program_on(path, program)
        if found is None:
            where = "there, or it cannot be run" if os.sep in program else "in the PATH of your login shell"
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"agent.command: there is no program {self._program!r} {where}",
                "Ask the user to install it, or to set agent.command to its absolute path.",
            )
        return found

    def _check(self, end: ProgramEnd, report: CommandReport) -> None:
        """Raises `ToolError` for a run that gave no answer."""
        complaint = cut_middle(end.stderr_tail, _COMPLAINT_CHARS)
        if end.timed_out:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"{self.name} was ended after {self._options.command_timeout_s:g} s",
                "Ask for less in one go; agent.command_timeout_s sets the limit.",
                output=report.text or complaint,
            )
        if report.failure:
            raise ToolError(
                ErrorCode.MODEL,
                f"{self.name} failed: {report.failure}",
                f"Ask the user to try {self._program} in a terminal.",
                output=complaint,
            )
        if report.out_of_turns or (report.text and report.is_whole and end.exit_code == 0):
            return
        if end.exit_code == 0:
            what = "ended in the middle" if not report.is_whole else "printed nothing"
        else:
            signalled = signal_name(128 - end.exit_code) if end.exit_code < 0 else ""
            what = f"was ended by {signalled}" if signalled else f"failed with exit code {end.exit_code}"
        raise ToolError(
            ErrorCode.MODEL,
            f"{self.name} {what}",
            f"Ask the user to try {self._program} in a terminal, and to look at agent.command.",
            output="\n".join(part for part in (cut_middle(report.text, _COMPLAINT_CHARS), complaint) if part),
        )


def _configured_name(names: ModelNames | EffortNames, ours: str) -> str:
    return getattr(names, ours) or ours if ours in type(names).model_fields else ours


def _after(state: AgentState, report: CommandReport) -> AgentState:
    """Counts add up over the runs that mail has asked for."""
    return AgentState(
        turns=state.turns + report.turns,
        text=report.text or state.text,
        resume_token=report.session or state.resume_token,
        input_tokens=add_counts(state.input_tokens, report.input_tokens),
        output_tokens=add_counts(state.output_tokens, report.output_tokens),
    )


def _listed(names: frozenset[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def _depth() -> int:
    """How deep in agents this goat-mcp is itself."""
    text = os.environ.get(DEPTH_VARIABLE, "")
    return int(text) if text.isdigit() else 0
