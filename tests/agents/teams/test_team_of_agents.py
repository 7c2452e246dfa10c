"""A team whose members are real agents over the gateway: a scripted model, real mail, tasks and permissions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.catalog.filter import TEAMS_VARIABLE
from goat_mcp.core.model import ModelReply, ModelRequest
from goat_mcp.core.result import ToolResult
from tests.agents.scripted import Ground, ScriptedModel, ground, results_in, says, use

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def teams_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TEAMS_VARIABLE, "1")


class Members:
    """A model that plays every member: `replies` holds each member's turns; past their end a member says `ready`."""

    takes_tools = True

    def __init__(self, *, waits_for: dict[str, str] | None = None, **replies: list[ModelReply]) -> None:
        """`waits_for`: what a member must have been told before it begins with its replies."""
        self.waits_for = waits_for or {}
        self.replies = replies
        self.heard: dict[str, list[str]] = {name: [] for name in replies}

    async def reply(self, request: ModelRequest) -> ModelReply:
        name = next(name for name in self.replies if f"You are {name}," in _text(request, 0))
        self.heard[name].append(_text(request, -1))
        begins = any(self.waits_for.get(name, "") in heard for heard in self.heard[name])
        return self.replies[name].pop(0) if begins and self.replies[name] else says("ready")


def _text(request: ModelRequest, at: int) -> str:
    return "\n".join(str(block.get("text", "")) for block in request.messages[at].content)


async def until(place: Ground, text: str, created: ToolResult) -> str:
    """Calls until a result brings mail that holds `text`. A quick member's mail comes with the team itself."""
    found = created.text
    with anyio.fail_after(60):
        while text not in found:
            await anyio.sleep(0.02)
            found = (await place.call("Glob", {"pattern": "*"})).text
    return found


def members_of(result: ToolResult) -> Any:
    assert result.facts is not None, result.text
    return result.facts["members"]


async def test_members_work_write_to_each_other_and_to_the_lead_and_end(tmp_path: Path) -> None:
    model = Members(
        waits_for={"writer": "three tests fail"},
        tester=[
            says("", use("SendMessage", {"to": "writer", "message": "three tests fail"})),
            says("I told the writer."),
        ],
        writer=[
            says("", use("SendMessage", {"to": "main", "message": "notes are written"})),
            says("written"),
        ],
    )
    async with ground(tmp_path, model) as place:
        members = [{"name": "tester", "prompt": "Run the tests."}, {"name": "writer", "subagent_type": "explorer"}]
        created = await place.call("TeamCreate", {"team_name": "release", "members": members})

        text = await until(place, "notes are written", created)
        deleted = await place.call("TeamDelete", {"force": True})

        assert [set(member) for member in members_of(created)] == [{"name", "agent_id"}] * 2
        assert "from writer; a team member, not the user\n" in text
        assert any("three tests fail" in heard and "from tester" in heard for heard in model.heard["writer"])
        assert deleted.facts == {"team_name": "release", "stopped": []}
        output = await place.call("TaskOutput", {"task_id": members_of(created)[0]["agent_id"], "block": False})
        assert "completed" in output.text


async def test_a_member_may_write_to_its_team_unasked_but_not_change_files(tmp_path: Path) -> None:
    model = Members(
        tester=[
            says("", use("Write", {"file_path": "@/a.txt", "content": "x"})),
            says("", use("SendMessage", {"to": "main", "message": "I could not write"})),
        ]
    )
    rules = {"allow": ["TeamCreate", "TeamDelete"]}
    async with ground(tmp_path, model, mode="default", permissions=rules) as place:
        team = {"team_name": "release", "members": [{"name": "tester", "prompt": "Go."}]}
        created = await place.call("TeamCreate", team)

        await until(place, "I could not write", created)
        await place.call("TeamDelete", {"force": True})

    assert not (tmp_path / "ws" / "a.txt").exists()


async def test_a_deny_rule_holds_for_members_too(tmp_path: Path) -> None:
    model = Members(tester=[says("", use("SendMessage", {"to": "main", "message": "secret"})), says("no way")])
    async with ground(tmp_path, model, permissions={"deny": ["SendMessage"]}) as place:
        team = {"team_name": "release", "members": [{"name": "tester", "prompt": "Go."}]}
        created = await place.call("TeamCreate", team)

        assert "secret" not in await until(place, "no way", created)
        await place.call("TeamDelete", {"force": True})


async def test_without_a_model_the_member_is_named_with_the_setting_to_use(tmp_path: Path) -> None:
    async with ground(tmp_path) as place:
        created = await place.call("TeamCreate", {"team_name": "release", "members": [{"name": "tester"}]})
        await place.call("TeamDelete", {})

    (tester,) = members_of(created)
    assert "E_NOT_CONFIGURED" in tester["error"]


@pytest.mark.parametrize("value", ["", "0", "false"])
async def test_without_the_variable_there_are_no_teams_and_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(TEAMS_VARIABLE, value)
    async with ground(tmp_path) as place:
        names = [entry["name"] for entry in place.gateway.catalog.listing()]
        result = await place.call("TeamCreate", {"team_name": "release"})

    assert not {"TeamCreate", "SendMessage", "TeamDelete"} & set(names)
    assert result.error_code == "E_TOOL_NOT_IN_CATALOG"
    assert TEAMS_VARIABLE in result.text


async def heard(model: Members, member: str, text: str) -> None:
    with anyio.fail_after(60):
        while not any(text in one for one in model.heard[member]):  # noqa: ASYNC110  # a poll
            await anyio.sleep(0.02)


def agent_id_of(result: ToolResult) -> str:
    assert result.facts is not None, result.text
    return str(result.facts["agent_id"])


async def test_agent_adds_a_member_to_the_live_team_whom_messages_reach_and_the_end_of_the_team_ends(
    tmp_path: Path,
) -> None:
    model = Members(
        tester=[says("tests are green")],
        scribe=[says("", use("SendMessage", {"to": "tester", "message": "please test"})), says("asked")],
    )
    async with ground(tmp_path, model) as place:
        await place.call("TeamCreate", {"team_name": "release", "members": [{"name": "tester", "prompt": "Test."}]})

        joined = await place.agent("Ask the tester.", name="scribe", team_name="release")
        sent = await place.call("SendMessage", {"to": "scribe", "message": "write the notes"})
        await heard(model, "scribe", "write the notes")
        await heard(model, "tester", "please test")
        refused = await place.call("TeamDelete", {})
        deleted = await place.call("TeamDelete", {"force": True})
        output = await place.call("TaskOutput", {"task_id": "scribe", "block": False})

    assert joined.text.startswith(f"Task started: {agent_id_of(joined)}")
    assert "scribe is a member of team release: write to it with SendMessage" in joined.text
    assert sent.facts == {"delivered": ["scribe"], "failed": {}}
    assert any("from scribe" in text for text in model.heard["tester"])
    assert refused.error_code == "E_BUSY" and "tester, scribe" in refused.text
    assert deleted.facts == {"team_name": "release", "stopped": []}
    assert "completed" in output.text


async def test_agent_names_the_team_there_is_when_another_is_meant_and_starts_nobody(tmp_path: Path) -> None:
    async with ground(tmp_path, Members(tester=[])) as place:
        without = await place.agent(team_name="release")
        await place.call("TeamCreate", {"team_name": "release", "members": []})
        other = await place.agent(team_name="relaese")
        unnamed = await place.agent(team_name="release", name="main")
        await place.call("TeamDelete", {})

        assert place.left_behind() == []

    assert (without.error_code, other.error_code, unnamed.error_code) == ("E_INPUT", "E_INPUT", "E_INPUT")
    assert "team_name: there is no team called 'release'\nMake it with TeamCreate" in without.text
    assert "team_name: there is no team called 'relaese'\nYour team is called release." in other.text
    assert "name: wants letters, digits, - and _" in unnamed.text


async def test_a_member_without_a_name_is_called_after_its_type_and_a_name_is_given_once(tmp_path: Path) -> None:
    silent: dict[str, Any] = {"explorer": [], "explorer-2": []}
    model = Members(**silent)
    async with ground(tmp_path, model) as place:
        await place.call("TeamCreate", {"team_name": "release"})
        first, second = [await place.agent(subagent_type="explorer", team_name="release") for _ in range(2)]
        taken = await place.agent(name="explorer", team_name="release")
        sent = await place.call("SendMessage", {"to": "*", "message": "hello"})
        await place.call("TeamDelete", {"force": True})

    assert "explorer is a member" in first.text and "explorer-2 is a member" in second.text
    assert "name: team release has a member 'explorer' already" in taken.text
    assert sent.facts == {"delivered": ["explorer", "explorer-2"], "failed": {}}


async def test_a_member_that_has_ended_is_resumed_into_its_team(tmp_path: Path) -> None:
    model = Members(tester=[says("first"), says("bye"), says("back")])
    async with ground(tmp_path, model) as place:
        team = {"team_name": "release", "members": [{"name": "tester", "prompt": "Go."}]}
        tester = members_of(await place.call("TeamCreate", team))[0]["agent_id"]
        await place.call("SendMessage", {"to": "tester", "type": "shutdown_request"})
        await place.call("TaskOutput", {"task_id": tester, "timeout": 45_000})

        resumed = await place.agent("Go on.", resume=tester, team_name="release")
        sent = await place.call("SendMessage", {"to": "tester", "message": "welcome"})
        await place.call("TeamDelete", {"force": True})

    assert agent_id_of(resumed) == tester
    assert sent.facts == {"delivered": ["tester"], "failed": {}}


async def test_an_agent_outside_the_team_adds_nobody_to_it(tmp_path: Path) -> None:
    starts = use("Agent", {"description": "d", "prompt": "p", "team_name": "release"})
    model = ScriptedModel([says("", starts), says("done")])
    async with ground(tmp_path, model) as place:
        await place.call("TeamCreate", {"team_name": "release"})
        await place.agent("Start one.")
        deleted = await place.call("TeamDelete", {})

    (refused,) = results_in(model.requests[-1].messages[-1])
    assert "you are no member of team release" in refused
    assert deleted.facts == {"team_name": "release", "stopped": []}


async def test_members_of_the_clients_own_model_are_refused_with_the_reason(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with ground(tmp_path) as place:
        ctx = replace(place.ctx, host_model=model)
        await place.call("TeamCreate", {"team_name": "release"}, ctx)
        refused = await place.agent(ctx=ctx, team_name="release")
        await place.call("TeamDelete", {})

    assert "an agent that waits for mail goes on after this call" in refused.text
    assert model.requests == []
