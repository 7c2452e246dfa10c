"""goa_command: what it knows, and that no command widens what the model may do. tools.md, section 3; R-PERM-6."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.settings.view import ALIASES
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

TOOL = "goa_command__run"


class Person:
    """Answers every question in one way."""

    def __init__(self, reply: Reply, decision: str = "") -> None:
        self.reply, self.decision = reply, decision
        self.asked: list[Form] = []

    async def __call__(self, form: Form) -> Answer:
        self.asked.append(form)
        return Answer(self.reply, {"decision": self.decision} if self.decision else {})


@pytest.mark.parametrize(
    ("before", "wanted"), [("default", "plan"), ("acceptEdits", "default"), ("default", "dontAsk")]
)
async def test_a_mode_that_allows_less_is_taken_at_once(tmp_path: Path, before: str, wanted: str) -> None:
    person = Person(Reply.DECLINED)
    caller = Caller(tmp_path, {"mode": before}, person)

    assert await caller.value(TOOL, command=f"mode {wanted}") == {"mode": wanted, "before": before}
    assert caller.gateway.modes.of("one").value == wanted
    assert person.asked == []


async def test_a_mode_that_was_chosen_here_is_told_as_the_sessions(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"mode": "acceptEdits"})
    await caller.value(TOOL, command="mode default")

    told = await caller.value(TOOL, command="config mode")

    assert (told["value"], told["source"]) == ("default", "session")


async def test_in_plan_mode_nothing_is_written_any_more(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    await caller.value("goa_command", command="mode plan")

    assert "E_PLAN_MODE" in await caller.problem("Write", file_path="@a", content="x")


@pytest.mark.parametrize(
    "command", ["help", "mode", "tasks", "memory list", "review list", "config mode", "config output.max_chars"]
)
async def test_in_plan_mode_what_only_tells_something_does(tmp_path: Path, command: str) -> None:
    assert await Caller(tmp_path, {"mode": "plan"}).value(TOOL, command=command)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("mood plan", "command: 'mood plan' is none of this server's\nDid you mean mode NAME? There are help, mode"),
        ("rm -rf /", "command: 'rm -rf /' is none of this server's\nThere are help, mode, mode NAME, tasks"),
        ("mode default; ls", "command: 'mode default; ls' is none of this server's\nDid you mean mode NAME? "),
        ("reviews", "command: 'reviews' is none of this server's\nDid you mean review list? "),
        ("mode nowhere", "command: no mode 'nowhere'\nThere are plan, dontAsk, default and acceptEdits."),
        ("'open", "command: No closing quotation\nClose the quotes."),
        ("", "command: '' is none of this server's\n"),
    ],
)
async def test_in_plan_mode_what_is_no_command_is_told_as_elsewhere(tmp_path: Path, command: str, said: str) -> None:
    problem = await Caller(tmp_path, {"mode": "plan"}).problem(TOOL, command=command)

    assert problem.startswith(said)
    assert problem.endswith("[E_INPUT]")


@pytest.mark.parametrize("command", ["/help", "'mode'", "  tasks "])
async def test_in_plan_mode_a_command_may_be_written_in_any_way(tmp_path: Path, command: str) -> None:
    assert await Caller(tmp_path, {"mode": "plan"}).value(TOOL, command=command)


async def test_its_description_says_that_no_command_leads_out_of_plan_mode(tmp_path: Path) -> None:
    described = Caller(tmp_path, {"mode": "plan"}).gateway.catalog.shown()["goa_command__run"].entry["description"]

    assert "From plan mode no command leads: it is refused there" in described


@pytest.mark.parametrize("command", ["mode default", "mode dontAsk", "'mode' acceptEdits", "mode  bypassPermissions"])
async def test_in_plan_mode_no_command_changes_anything(tmp_path: Path, command: str) -> None:
    caller = Caller(tmp_path, {"mode": "plan"}, Person(Reply.ACCEPTED, "allow"))

    problem = await caller.problem(TOOL, command=command)

    assert problem.endswith("[E_PLAN_MODE]")
    assert caller.gateway.modes.of("one").value == "plan"


@pytest.mark.parametrize("person", [Person(Reply.ACCEPTED, "deny"), Person(Reply.UNAVAILABLE), Person(Reply.CANCELLED)])
@pytest.mark.parametrize(("before", "wanted"), [("default", "acceptEdits"), ("dontAsk", "confirm")])
async def test_r_perm_6_a_mode_that_allows_more_wants_the_users_word(
    tmp_path: Path, person: Person, before: str, wanted: str
) -> None:
    caller = Caller(tmp_path, {"mode": before, "permissions": {"allow": [TOOL]}}, person)

    problem = await caller.problem(TOOL, command=f"mode {wanted}")

    assert problem.endswith("[E_PERMISSION]")
    assert caller.gateway.modes.of("one").value == before


async def test_a_mode_that_allows_more_is_taken_when_the_user_agrees(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {}, Person(Reply.ACCEPTED, "allow"))

    assert (await caller.value(TOOL, command="mode acceptEdits"))["mode"] == "acceptEdits"


@pytest.mark.parametrize(
    "command", ["mode bypassPermissions", "mode default; rm -rf /", "rm -rf /", "mode", "config mode bypassPermissions"]
)
async def test_no_command_gets_past_the_permissions(tmp_path: Path, command: str) -> None:
    caller = Caller(tmp_path, {}, Person(Reply.ACCEPTED, "allow"))

    await caller.call(TOOL, command=command)

    assert caller.gateway.modes.of("one").value == "default"


async def test_what_there_is_can_be_looked_at(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"files": {"review_mode": True}})
    await caller.call("Write", file_path="@a", content="x\n")

    (waiting,) = (await caller.value(TOOL, command="review list"))["waiting"]
    shown = await caller.value(TOOL, command=f"review show {waiting['id']}")
    config = await caller.value(TOOL, command="config output.max_chars")

    assert "+x" in shown["diff"]
    assert config["value"] == 30_000
    assert await caller.value(TOOL, command="tasks") == {"tasks": []}
    assert await caller.value(TOOL, command="mode") == {"mode": "default"}
    assert "mode NAME" in (await caller.value(TOOL, command="/help"))["commands"]


async def test_r_http_3_what_waits_of_another_principal_is_not_told(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"files": {"review_mode": True}}, session="ada's", principal="ada")
    await caller.call("Write", file_path="@a.txt", content="x")
    (waiting,) = (await caller.value(TOOL, command="review list"))["waiting"]
    caller.session, caller.principal = "bob's", "bob"

    listed = await caller.value(TOOL, command="review list")
    shown = await caller.problem(TOOL, command=f"review show {waiting['id']}")

    assert listed == {"waiting": []}
    assert shown.endswith("[E_NOT_FOUND]")


@pytest.mark.parametrize("command", ["", "mood plan", "mode nowhere", "'open", "review apply 1", "x" * 2000])
async def test_what_is_no_command_is_told_with_those_that_are(tmp_path: Path, command: str) -> None:
    assert (await Caller(tmp_path).problem(TOOL, command=command)).endswith("[E_INPUT]")


async def test_background_tasks_are_listed(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    async with caller.gateway.running():
        await caller.call("Bash", command="sleep 60", run_in_background=True)
        (task,) = (await caller.value(TOOL, command="tasks"))["tasks"]

    assert (task["kind"], task["status"], task["title"]) == ("shell", "running", "sleep 60")


@pytest.mark.parametrize("command", ["config mode", "/config mode", "'config'  \"mode\" "])
@pytest.mark.parametrize("effect", ["deny", "ask"])
@pytest.mark.parametrize("rule", ["Config", "Config(setting:mode)"])
async def test_a_rule_against_config_holds_for_the_command_that_reads_settings(
    tmp_path: Path, rule: str, effect: str, command: str
) -> None:
    caller = Caller(tmp_path, {"permissions": {effect: [rule]}})

    problem = await caller.problem(TOOL, command=command)

    assert rule in problem
    assert problem.endswith({"deny": "[E_PERMISSION]", "ask": "[E_APPROVAL_PENDING]"}[effect])
    assert not (await caller.call(TOOL, command="mode")).is_error


async def test_a_setting_has_one_name_for_the_command(tmp_path: Path) -> None:
    for alias, key in ALIASES.items():
        problem = await Caller(tmp_path).problem(TOOL, command=f"config {alias}")
        assert problem.endswith(f"It is config {key}.\n[E_SETTING]")
