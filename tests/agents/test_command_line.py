"""The engine over another program: what it is given, what is made of its answer, and how it is stopped."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.agents.command_line import DEPTH_VARIABLE, CommandLine
from goat_mcp.agents.engine import Activity, AgentJob, AgentState
from goat_mcp.agents.options import AgentOptions
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import NO_LIMITS, Rights
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from tests.e2e.processes import left_after

pytestmark = pytest.mark.anyio

FIRST = NO_LIMITS.narrowed(allowed=None)
# What it was given, as a person would see it: `seen` in the workspace.
WRITE_SEEN = """
import json, os, sys
seen = {"argv": sys.argv[1:], "stdin": sys.stdin.read(), "cwd": os.getcwd(), "env": dict(os.environ)}
with open("seen", "a") as file:
    file.write(json.dumps(seen) + "\\n")
"""
ANSWER = """
import json
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "s-1",
    "num_turns": 2, "usage": {"input_tokens": 5, "output_tokens": 1}}))
"""


@pytest.fixture
def guard() -> Generator[ProcessGuard]:
    guard = ProcessGuard()
    yield guard
    guard.close()


class Agents:
    """Engines over programs that a test writes."""

    def __init__(self, folder: Path, guard: ProcessGuard) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.program = folder / "agent"
        self.guard = guard
        self.events: list[Activity | AgentState] = []

    def engine(self, source: str, *words: Any, **options: Any) -> CommandLine:
        self.program.write_text(f"#!{sys.executable}\n{textwrap.dedent(source)}")
        self.program.chmod(0o755)
        return self.over({"command": [str(self.program), *words], **options})

    def over(self, settings: dict[str, Any]) -> CommandLine:
        options = AgentOptions.model_validate(settings)
        return CommandLine(options, self.guard, CommandEnvironment(passed_on=options.command_env))

    def job(self, rights: Rights = FIRST, **more: Any) -> AgentJob:
        ctx = ToolContext(call_id="c", rights=rights)
        told: dict[str, Any] = {
            "agent_id": "a1",
            "prompt": "Count the goats.",
            "system": "You count.",
            "max_turns": 7,
            **more,
        }
        return AgentJob(directory=self.workspace, ctx=ctx, **told)

    async def error(self, engine: CommandLine, job: AgentJob | None = None) -> ToolError:
        with pytest.raises(ToolError) as refused:
            await engine.run(job or self.job(), self.events.append)
        return refused.value

    @property
    def seen(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.workspace / "seen").read_text().splitlines()]


@pytest.fixture
def agents(tmp_path: Path, guard: ProcessGuard) -> Agents:
    return Agents(tmp_path, guard)


CLAUDE = (
    *("-p", "--output-format", "json"),
    ["--append-system-prompt", "{system}"],
    ["--model", "{model}"],
    ["--max-turns", "{max_turns}"],
    ["--resume", "{resume}"],
    ["--tools", "{allowed_tools}"],
    ["--disallowedTools", "{denied_tools}"],
    ["--permission-mode", "{mode}"],
)


async def test_a_run_gives_the_prompt_and_gets_text_session_and_cost(agents: Agents) -> None:
    engine = agents.engine(WRITE_SEEN + ANSWER, *CLAUDE, models={"opus": "claude-opus-9"})

    outcome = await engine.run(agents.job(model="opus"), agents.events.append)

    done = AgentState(turns=2, text="Done.", resume_token="s-1", input_tokens=5, output_tokens=1)
    assert (outcome.state, outcome.notices) == (done, ())
    assert agents.events == [Activity(1, "thinking"), done]
    (seen,) = agents.seen
    assert seen["argv"] == [
        *("-p", "--output-format", "json", "--append-system-prompt", "You count."),
        *("--model", "claude-opus-9", "--max-turns", "7"),
    ]
    assert (seen["stdin"], seen["cwd"]) == ("Count the goats.", str(agents.workspace))


async def test_a_program_without_a_place_for_it_gets_the_agents_role_with_the_prompt(agents: Agents) -> None:
    await agents.engine(WRITE_SEEN + "print('ok')").run(agents.job(), agents.events.append)
    await agents.engine(WRITE_SEEN + "print('ok')", "{prompt}").run(agents.job(), agents.events.append)

    assert [(seen["argv"], seen["stdin"]) for seen in agents.seen] == [
        ([], "You count.\n\nCount the goats."),
        (["You count.\n\nCount the goats."], ""),
    ]


async def test_the_program_sees_of_our_variables_only_what_it_is_allowed(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "s")
    monkeypatch.setenv("AGENT_KEY", "k")

    await agents.engine(WRITE_SEEN + ANSWER, command_env=["AGENT_KEY"]).run(agents.job(), agents.events.append)

    environment = agents.seen[0]["env"]
    assert "SOME_SECRET" not in environment
    assert (environment["AGENT_KEY"], environment[DEPTH_VARIABLE]) == ("k", "1")


async def test_plain_text_is_an_answer(agents: Agents) -> None:
    outcome = await agents.engine("print('Three', 'goats.')").run(agents.job(), agents.events.append)

    assert outcome.state == AgentState(turns=1, text="Three goats.")


async def test_a_session_is_resumed_where_the_command_can(agents: Agents) -> None:
    engine = agents.engine(WRITE_SEEN + ANSWER, ["--resume", "{resume}"])

    outcome = await engine.run(agents.job(resume_token="s-0"), agents.events.append)

    assert agents.seen[0]["argv"] == ["--resume", "s-0"]
    assert agents.seen[0]["stdin"] == "Count the goats."
    assert outcome.state.resume_token == "s-1"
    error = await agents.error(agents.engine(ANSWER), agents.job(resume_token="s-0"))
    assert (error.code, "{resume}" in error.message) == (ErrorCode.NOT_CONFIGURED, True)


class Mailbox:
    def __init__(self, early: Sequence[str], *late: Sequence[str]) -> None:
        self.early = early
        self.late = list(late)
        self.said: list[str] = []

    async def between_turns(self) -> Sequence[str]:
        return self.early

    async def when_idle(self, text: str) -> Sequence[str]:
        self.said.append(text)
        return self.late.pop(0) if self.late else ()


async def test_mail_goes_on_in_the_same_session_and_costs_add_up(agents: Agents) -> None:
    mail = Mailbox(["Be quick."], ["And the sheep?", "Hurry."])

    outcome = await agents.engine(WRITE_SEEN + ANSWER, *CLAUDE).run(agents.job(mail=mail), agents.events.append)

    assert [seen["stdin"] for seen in agents.seen] == ["Count the goats.\n\nBe quick.", "And the sheep?\n\nHurry."]
    assert agents.seen[1]["argv"][-2:] == ["--resume", "s-1"]
    assert mail.said == ["Done.", "Done."]
    assert (outcome.state.turns, outcome.state.input_tokens, outcome.state.output_tokens) == (4, 10, 2)


async def test_a_program_that_cannot_be_resumed_says_that_it_hears_no_more(agents: Agents) -> None:
    outcome = await agents.engine(ANSWER).run(agents.job(mail=Mailbox([], ["more"])), agents.events.append)

    assert "mail that comes later is not read" in outcome.notices[0]


async def test_limits_are_passed_on(agents: Agents) -> None:
    rights = FIRST.narrowed(allowed=frozenset({"Read", "Grep"}), denied=frozenset({"Bash"}), modes=("plan",))

    await agents.engine(WRITE_SEEN + ANSWER, *CLAUDE).run(agents.job(rights), agents.events.append)

    assert agents.seen[0]["argv"][-6:] == [
        *("--tools", "Grep,Read", "--disallowedTools", "Bash", "--permission-mode", "plan")
    ]


@pytest.mark.parametrize("mode", ["bypassPermissions", "acceptEdits"])
async def test_a_mode_that_would_allow_more_is_not_passed_on(agents: Agents, mode: str) -> None:
    await agents.engine(WRITE_SEEN + ANSWER, *CLAUDE).run(
        agents.job(FIRST.narrowed(allowed=None, modes=(mode,))), print
    )

    assert "--permission-mode" not in agents.seen[0]["argv"]


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        (FIRST.narrowed(allowed=frozenset({"Read"})), "no {allowed_tools}"),
        (FIRST.narrowed(allowed=frozenset[str]()), "no tool at all"),
        (FIRST.narrowed(allowed=None, denied=frozenset({"Bash", "TodoWrite"})), "may not use Bash"),
        (FIRST.narrowed(allowed=None, modes=("plan",)), "no {mode}"),
    ],
)
async def test_limits_the_command_has_no_place_for_are_refused(agents: Agents, rights: Rights, said: str) -> None:
    error = await agents.error(agents.engine(WRITE_SEEN + ANSWER), agents.job(rights))

    assert error.code is ErrorCode.NOT_CONFIGURED
    assert said in error.message
    assert not (agents.workspace / "seen").exists()


async def test_that_no_question_can_be_asked_is_no_limit_to_pass_on(agents: Agents) -> None:
    rights = FIRST.narrowed(allowed=None, denied=frozenset({"AskUserQuestion", "Agent"}))

    assert (await agents.engine(ANSWER).run(agents.job(rights), print)).state.text == "Done."


async def test_a_directory_that_is_not_enforced_is_told(agents: Agents) -> None:
    rights = FIRST.narrowed(allowed=None, writes_below=str(agents.workspace))

    outcome = await agents.engine(ANSWER).run(agents.job(rights), print)

    assert "is not enforced" in outcome.notices[0]


async def test_agents_do_not_start_each_other_without_end(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEPTH_VARIABLE, "2")

    assert (await agents.error(agents.engine(ANSWER))).code is ErrorCode.PERMISSION


async def test_turns_that_ran_out_are_told_with_what_was_said(agents: Agents) -> None:
    source = """
    import json
    message = {"content": [{"type": "text", "text": "So far: 3"}]}
    print(json.dumps({"type": "assistant", "session_id": "s", "message": message}))
    print(json.dumps({"type": "result", "subtype": "error_max_turns", "is_error": True, "num_turns": 7}))
    raise SystemExit(1)
    """

    outcome = await agents.engine(source, *CLAUDE).run(agents.job(), agents.events.append)

    assert (outcome.state.text, outcome.state.turns, outcome.state.resume_token) == ("So far: 3", 7, "s")
    assert "stopped after 7 turns" in outcome.notices[0]


@pytest.mark.parametrize(
    ("source", "code", "said", "shown"),
    [
        ("import sys; sys.exit('no login')", ErrorCode.MODEL, "failed with exit code 1", "no login"),
        ("import sys; print('half'); sys.exit(4)", ErrorCode.MODEL, "failed with exit code 4", "half"),
        ("import os; os.kill(os.getpid(), 9)", ErrorCode.MODEL, "was ended by SIGKILL", ""),
        ("pass", ErrorCode.MODEL, "printed nothing", ""),
        ('print(\'{"type": "system"}\')', ErrorCode.MODEL, "ended in the middle", ""),
        (
            'print(\'{"type": "result", "is_error": true, "result": "Invalid API key"}\')',
            ErrorCode.MODEL,
            "failed: Invalid API key",
            "",
        ),
    ],
)
async def test_a_run_without_an_answer_says_why(
    agents: Agents, source: str, code: ErrorCode, said: str, shown: str
) -> None:
    error = await agents.error(agents.engine(source))

    assert (error.code, shown in error.output) == (code, True)
    assert said in error.message
    assert str(agents.program) in error.message


async def test_a_program_that_is_not_there_names_the_setting(agents: Agents) -> None:
    missing = await agents.error(agents.over({"command": ["no-such-agent-program"]}))
    engine = agents.engine(ANSWER)
    agents.program.chmod(0o644)

    assert (missing.code, "agent.command" in missing.message) == (ErrorCode.NOT_CONFIGURED, True)
    assert (await agents.error(engine)).code is ErrorCode.NOT_CONFIGURED
    agents.program.write_text("#!/no/such/interpreter\n")
    agents.program.chmod(0o755)
    assert (await agents.error(engine)).code is ErrorCode.NOT_CONFIGURED


async def test_its_time_is_limited(agents: Agents) -> None:
    error = await agents.error(agents.engine("import time; time.sleep(600)", command_timeout_s=2))

    assert error.code is ErrorCode.TIMEOUT
    assert "agent.command_timeout_s" in error.suggestion


async def test_a_stopped_run_leaves_nothing_and_can_be_resumed(agents: Agents) -> None:
    source = """
    import json, subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    print(json.dumps({"type": "system", "session_id": "s-9"}), flush=True)
    time.sleep(600)
    """
    engine = agents.engine(source, *CLAUDE)
    knows_session = anyio.Event()

    def on_event(event: Activity | AgentState) -> None:
        if isinstance(event, AgentState) and event.resume_token == "s-9":
            knows_session.set()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(engine.run, replace(agents.job(), max_turns=1), on_event)
            await knows_session.wait()
            group.cancel_scope.cancel()

    assert left_after([], str(agents.workspace), 5) == []
