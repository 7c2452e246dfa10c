"""Plan mode end to end: a plan is saved, the user approves, edits or rejects it, and nothing changes before."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from goat_mcp.calls.approvals.record import Approval as Record
from goat_mcp.calls.approvals.record import DecidedBefore, Status
from goat_mcp.calls.permissions.mode import Approval, Mode
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.cli.plan import plan as plan_command
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Ask, Form, Reply, nobody_to_ask
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.approvals.user_queue import approval_queue
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import PlanStatus
from tests.quick_start import goat_command

pytestmark = pytest.mark.anyio

PLAN = "# Rename the module\n1. Move it"


def planning(folder: Path, **settings: Any) -> Gateway:
    (folder / "ws").mkdir(exist_ok=True)
    tree = Settings.model_validate({"workspace": [folder / "ws"], "mode": "plan", **settings})
    return Gateway(tree, approval=Approval.ELICIT, state=StateDirectory(folder / "state"))


class User:
    """Fills in the forms of plan mode, in turn."""

    def __init__(self, *values: dict[str, Any]) -> None:
        self.values = list(values)
        self.forms: list[Form] = []

    async def __call__(self, form: Form) -> Answer:
        self.forms.append(form)
        return Answer(Reply.ACCEPTED, self.values.pop(0))


async def exit_plan(gateway: Gateway, ask: Ask = nobody_to_ask, **arguments: Any) -> ToolResult:
    return await gateway.call("ExitPlanMode", arguments, ToolContext(call_id="c", ask=ask))


async def write(gateway: Gateway, ask: Ask = nobody_to_ask) -> str | None:
    arguments = {"file_path": "@/a.txt", "content": "x"}
    return (await gateway.call("Write", arguments, ToolContext(call_id="w", ask=ask))).error_code


def approved(result: ToolResult) -> tuple[bool, bool]:
    assert result.facts is not None and not result.is_error
    return result.facts["approved"], result.facts["plan_was_edited"]


def approve_at_a_terminal(name: str) -> int:
    """Run `goat-mcp plan approve` as a person does. Returns its exit status."""
    import pty

    ours, theirs = pty.openpty()
    try:
        command = goat_command("plan", "approve", name)
        return subprocess.run(command, stdin=theirs, capture_output=True, timeout=60).returncode
    finally:
        os.close(ours)
        os.close(theirs)


async def test_plan_001_after_approval_the_session_leaves_plan_mode_and_before_it_an_allow_rule_does_not_help(
    tmp_path: Path,
) -> None:
    gateway = planning(tmp_path, permissions={"allow": ["Write", "Edit", "Bash", "NotebookEdit"]})

    for tool in gateway.registry.snapshot.tools.values():
        if tool.spec.name in ("Write", "Edit", "Bash", "NotebookEdit"):
            effect = gateway.pipeline.permission.decide(Call(tool.spec), ToolContext(call_id="c")).effect
            assert effect == "deny", tool.spec.name
    assert await write(gateway) == "E_PLAN_MODE"

    result = await exit_plan(gateway, User({"decision": "approve"}), plan=PLAN)

    assert approved(result) == (True, False)
    assert gateway.modes.of("local") is Mode.DEFAULT
    shown = await gateway.call("Config", {"setting": "mode"}, ToolContext(call_id="c"))
    assert shown.text == "mode = default (plan approved)"
    assert await write(gateway) is None
    assert (tmp_path / "ws" / "a.txt").read_text() == "x"


async def test_a_plan_the_user_edits_is_approved_as_edited(tmp_path: Path) -> None:
    gateway = planning(tmp_path)
    user = User({"decision": "edit"}, {"plan": "# Shorter"})

    result = await exit_plan(gateway, user, plan=PLAN)

    assert approved(result) == (True, True)
    assert "# Shorter" in result.text and result.facts is not None
    (saved,) = gateway.plan_approval.plans.newest_first("local")
    assert gateway.plan_approval.plans.text(saved) == "# Shorter"
    assert user.forms[1].questions[0].default == PLAN


async def test_a_rejected_plan_is_no_error_and_the_session_keeps_planning(tmp_path: Path) -> None:
    gateway = planning(tmp_path)

    result = await exit_plan(gateway, User({"decision": "reject", "feedback": "too long"}), plan=PLAN)

    assert approved(result) == (False, False)
    assert "They said: too long" in result.text
    assert await write(gateway) == "E_PLAN_MODE"
    assert [plan.status for plan in gateway.plan_approval.plans.newest_first("local")] == [PlanStatus.REJECTED]


@pytest.mark.parametrize("reply", [Reply.DECLINED, Reply.CANCELLED])
async def test_a_dismissed_form_approves_nothing(tmp_path: Path, reply: Reply) -> None:
    async def dismiss(form: Form) -> Answer:
        return Answer(reply)

    gateway = planning(tmp_path)

    assert approved(await exit_plan(gateway, dismiss, plan=PLAN)) == (False, False)
    assert await write(gateway) == "E_PLAN_MODE"


async def test_without_forms_the_plan_waits_for_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("GOAT_MCP_CALL", raising=False)
    gateway = planning(tmp_path, permissions={"allow": ["Write"]})

    result = await exit_plan(gateway, plan=PLAN)

    (saved,) = gateway.plan_approval.plans.newest_first("local")
    assert approved(result) == (False, False)
    assert "Waiting for the user's approval" in result.text and f"goat-mcp plan approve {saved.name}" in result.text
    assert await write(gateway) == "E_PLAN_MODE"
    assert PLAN in CliRunner().invoke(plan_command, ["show", saved.name]).output

    assert CliRunner().invoke(plan_command, ["approve", saved.name]).exit_code != 0  # nobody sits there
    assert await write(gateway) == "E_PLAN_MODE"
    assert approve_at_a_terminal(saved.name) == 0

    assert await write(gateway) is None


async def test_a_command_that_the_model_runs_cannot_approve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GOAT_MCP_CALL", "1")
    gateway = planning(tmp_path)
    await exit_plan(gateway, plan=PLAN)
    (saved,) = gateway.plan_approval.plans.newest_first("local")

    assert approve_at_a_terminal(saved.name) != 0
    assert await write(gateway) == "E_PLAN_MODE"


async def test_a_plan_approved_after_a_restart_counts_when_it_is_presented_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("GOAT_MCP_CALL", raising=False)
    await exit_plan(planning(tmp_path), plan=PLAN)
    restarted = planning(tmp_path)
    (saved,) = restarted.plan_approval.plans.newest_first("local")
    approve_at_a_terminal(saved.name)

    assert approved(await exit_plan(restarted, plan=PLAN + " and more")) == (False, False)
    assert approved(await exit_plan(restarted, plan=PLAN)) == (True, False)


async def test_an_approval_counts_once(tmp_path: Path) -> None:
    await exit_plan(planning(tmp_path), User({"decision": "approve"}), plan=PLAN)

    assert approved(await exit_plan(planning(tmp_path), plan=PLAN)) == (False, False)


async def test_without_a_plan_the_newest_one_is_presented(tmp_path: Path) -> None:
    gateway = planning(tmp_path)
    await exit_plan(gateway, plan=PLAN)
    user = User({"decision": "approve"})

    result = await exit_plan(gateway, user)

    assert approved(result) == (True, False)
    assert PLAN in user.forms[0].message


async def test_the_newest_of_several_plans_is_presented(tmp_path: Path) -> None:
    gateway = planning(tmp_path)
    for plan in ("# P", "again", "# another"):
        await exit_plan(gateway, plan=plan)
    user = User({"decision": "reject"}, {"decision": "reject"})

    await exit_plan(gateway, user)
    await exit_plan(gateway, plan="# P")
    await exit_plan(gateway, user)

    assert ["# another" in user.forms[0].message, "# P" in user.forms[1].message] == [True, True]


async def test_with_nothing_to_present_that_is_said(tmp_path: Path) -> None:
    assert (await exit_plan(planning(tmp_path))).error_code == "E_INPUT"


async def test_what_the_plan_wants_to_run_is_granted_only_where_the_user_ticks_it(tmp_path: Path) -> None:
    wanted = [{"tool": "Bash", "prompt": "run the tests"}, {"tool": "not a tool", "prompt": "x"}]
    gateway = planning(tmp_path)
    user = User({"decision": "approve"})
    await exit_plan(gateway, user, plan=PLAN, allowedPrompts=wanted)
    bash = gateway.registry.snapshot.tools["Bash"].spec

    assert [option.value for option in user.forms[0].questions[2].options] == ["Bash"]
    assert gateway.pipeline.permission.decide(Call(bash), ToolContext(call_id="c")).effect == "ask"

    other = planning(tmp_path)
    await exit_plan(other, User({"decision": "approve", "granted": ("Bash",)}), plan=PLAN, allowedPrompts=wanted)

    assert other.pipeline.permission.decide(Call(bash), ToolContext(call_id="c")).effect == "allow"
    elsewhere = other.pipeline.permission.decide(Call(bash), ToolContext(call_id="c", session_key="other"))
    assert elsewhere.effect == "deny"


async def test_outside_plan_mode_there_is_nothing_to_approve(tmp_path: Path) -> None:
    gateway = planning(tmp_path, mode="default")

    result = await exit_plan(gateway, plan=PLAN, anything_else=1)

    assert "not in plan mode" in result.text
    assert gateway.plan_approval.plans.newest_first("local") == []


async def test_a_setting_lets_the_hosts_own_dialog_approve(tmp_path: Path) -> None:
    gateway = planning(tmp_path, plan={"approval": "host"})

    assert approved(await exit_plan(gateway, plan=PLAN)) == (True, False)


class Slow:
    """A person who sees the form, and never answers it."""

    def __init__(self) -> None:
        self.shown = anyio.Event()
        self.withdrawn = False

    async def __call__(self, form: Form) -> Answer:
        self.shown.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.withdrawn = True
            raise
        raise AssertionError


async def decided_on_the_page(folder: Path, user: Slow, *, approved: bool) -> None:
    await user.shown.wait()
    queue = approval_queue(StateDirectory(folder / "state"))
    (found,) = await queue.waiting()
    await (queue.approve(found.id, by="page") if approved else queue.deny(found.id, by="page", reason="smaller steps"))


async def decided_meanwhile(gateway: Gateway, user: Slow, folder: Path, *, approved: bool) -> ToolResult:
    results: list[ToolResult] = []
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(decided_on_the_page, folder, user, approved=approved))
            results.append(await exit_plan(gateway, user, plan=PLAN))
    return results[0]


async def test_an_approval_from_elsewhere_ends_the_form_and_counts(tmp_path: Path) -> None:
    gateway, user = planning(tmp_path), Slow()

    result = await decided_meanwhile(gateway, user, tmp_path, approved=True)

    assert approved(result) == (True, False) and user.withdrawn
    assert "The plan was approved by the user (page)." in result.text
    assert gateway.modes.of("local") is Mode.DEFAULT
    (saved,) = gateway.plan_approval.plans.newest_first("local")
    assert saved.status is PlanStatus.USED


async def test_a_denial_from_elsewhere_ends_the_form_with_its_reason(tmp_path: Path) -> None:
    gateway, user = planning(tmp_path), Slow()

    result = await decided_meanwhile(gateway, user, tmp_path, approved=False)

    assert approved(result) == (False, False) and user.withdrawn
    assert "They said: smaller steps" in result.text
    assert gateway.modes.of("local") is Mode.PLAN


async def test_an_answer_in_the_form_is_in_the_queue_and_a_second_one_comes_too_late(tmp_path: Path) -> None:
    gateway, queue = planning(tmp_path), approval_queue(StateDirectory(tmp_path / "state"))

    async def person(form: Form) -> Answer:
        seen.extend(await queue.waiting())
        return Answer(Reply.ACCEPTED, {"decision": "approve"})

    seen: list[Record] = []
    result = await exit_plan(gateway, person, plan=PLAN)
    with pytest.raises(DecidedBefore):
        await queue.deny(seen[0].id, by="page")

    assert approved(result) == (True, False)
    decided = queue.store.find(seen[0].id)
    assert (decided.status, decided.decided_by) == (Status.APPROVED, "form in the client")
    assert decided.used_at_s is not None and await queue.waiting() == []


async def test_a_rejected_plan_that_is_presented_again_waits_again(tmp_path: Path) -> None:
    gateway = planning(tmp_path, permissions={"allow": ["Write"]})
    queue = approval_queue(StateDirectory(tmp_path / "state"))
    await exit_plan(gateway, User({"decision": "reject"}), plan=PLAN)
    assert await queue.waiting() == []

    await exit_plan(gateway, plan=PLAN)  # nobody to ask: it waits
    (again,) = await queue.waiting()
    await queue.approve(again.id, by="page")

    assert await write(gateway) is None
