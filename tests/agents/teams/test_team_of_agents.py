"""A team whose members are real agents over the gateway: a scripted model, real mail, tasks and permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.catalog.filter import TEAMS_VARIABLE
from goat_mcp.core.model import ModelReply, ModelRequest
from goat_mcp.core.result import ToolResult
from tests.agents.scripted import Ground, ground, says, use

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
