"""`approval.notify` in a serving process: it sends, its problems are in the status; without it nothing is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.approvals.record import Kind, Request
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.run import notify_people
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning

pytestmark = pytest.mark.anyio


def gateway(folder: Path, **approval: Any) -> Gateway:
    state = StateDirectory(folder / "state")
    settings = Settings.model_validate({"approval": {"notify_after_s": 0, **approval}})
    found = Gateway(settings, approval=Approval.HOST, state=state)
    found.first_list.set()
    ApprovalStore(state).add(Request(kind=Kind.CALL, subject="s", title="Allow Bash?", principal="local", tool="Bash"))
    return found


async def problem_of(found: Gateway) -> str:
    with anyio.fail_after(20):
        while True:
            problems = found.status.document()["problems"]
            for problem in problems:
                if problem["reason_code"] == "feature_failed":
                    return f"{problem['name']}: {problem['detail']}"
            await anyio.sleep(0.02)


@pytest.mark.posix_only(reason="a program of POSIX")
async def test_what_waits_is_sent_while_the_process_serves(tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = gateway(tmp_path, notify=[{"program": [sys.executable, "-c", f"open({str(out)!r}, 'w').write('rung')"]}])
    async with anyio.create_task_group() as group:
        group.start_soon(notify_people, found)
        with anyio.fail_after(20):
            while not (out.exists() and out.read_text() == "rung"):  # noqa: ASYNC110  # another process writes it
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()


async def test_a_channel_that_fails_is_a_problem_in_the_status_and_once_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = gateway(tmp_path, notify=[{"program": ["/no/such/program"]}])
    logged: list[str] = []

    def log(event: str, **fields: Any) -> None:
        logged.append(f"{event} {fields['name']}")

    monkeypatch.setattr(found.telemetry, "warning", log)
    problem = ""
    async with anyio.create_task_group() as group:
        group.start_soon(notify_people, found)
        problem = await problem_of(found)
        group.cancel_scope.cancel()
    place, detail = problem.partition(": ")[::2]
    found.diagnostics.report_feature(place, "")
    found.diagnostics.report_feature(place, detail)

    assert problem.startswith("approval.notify.0 (program): /no/such/program cannot be run: ")
    assert logged == ["feature approval.notify.0 (program)"]


async def test_a_bug_in_it_ends_it_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from goat_mcp.gateway.approvals.notify.notifier import Notifier

    async def broken(self: Notifier) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr(Notifier, "run", broken)
    found = gateway(tmp_path, notify=[{"desktop": True}])
    monkeypatch.setattr(found.telemetry, "warning", no_warning)

    await notify_people(found)

    assert await problem_of(found) == "approval.notify: it has stopped; see the log"


def test_without_entries_nothing_of_it_is_loaded(tmp_path: Path) -> None:
    code = f"""
import anyio, sys
from pathlib import Path
from tests.server.test_notify_people import gateway, notify_people
anyio.run(notify_people, gateway(Path({str(tmp_path)!r})))
print([name for name in sys.modules if "approvals.notify" in name or name == "wsproto"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == "[]"
