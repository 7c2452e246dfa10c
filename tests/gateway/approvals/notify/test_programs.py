"""Notifications by a program and on the desktop: what they get, and what becomes of those that misbehave."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from goat_mcp.calls.approvals.record import Choice, Status
from goat_mcp.core.errors import ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.approvals.notify import program as program_channel
from goat_mcp.gateway.approvals.notify.desktop import DesktopChannel
from goat_mcp.gateway.approvals.notify.message import digest_of, message_about
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment, LoginPath
from tests.gateway.approvals.notify.desk import Desk, running, until

pytestmark = [pytest.mark.anyio, pytest.mark.posix_only(reason="programs of POSIX")]

KEEPS = "import json,os,sys; open(sys.argv[1], 'w').write(json.dumps([json.load(sys.stdin), dict(os.environ)]))"


async def test_a_program_gets_the_record_as_json_and_little_else(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET_TOKEN", "canary-of-the-environment")
    approval = desk.add(
        arguments=(("command", "$(touch /tmp/never) 'token=abcdef123456' \u202e"),),
        diff="--- a\n+++ b\n",
        why=("runs a command",),
        choices=(Choice("once", "Allow once"), Choice("always", "Always allow", ("Bash(x)",))),
    )
    out = tmp_path / "out.json"
    async with running(desk.notifier({"program": [sys.executable, "-c", KEEPS, str(out)]})):
        await until(lambda: out.exists() and out.read_text())

    document, environ = json.loads(out.read_text())
    assert document["event"] == "approval"
    assert (document["id"], document["digest"]) == (approval.id, digest_of(approval))
    assert (document["kind"], document["tool"], document["risk"]) == ("call", "Bash", "high")
    assert document["arguments"] == {"command": "$(touch /tmp/never) 'token=[redacted]' \u202e"}
    assert document["choices"][1] == {"scope": "always", "title": "Always allow"}
    assert (document["diff"], document["why"]) == ("--- a\n+++ b\n", ["runs a command"])
    assert document["expires"].endswith("Z") and document["command"] == f"goat-mcp approve {approval.short_id}"
    assert "canary-of-the-environment" not in out.read_text() and "MY_SECRET_TOKEN" not in environ


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; sys.exit('no bell here')", "exited with 1: no bell here"),
        ("print('x' * 200_000)", "printed more than 65,536 bytes and was ended"),
        ("import time; time.sleep(60)", "took longer than 0.5 s and was ended"),
    ],
)
async def test_a_program_that_fails_is_reported_and_decides_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, code: str, problem: str
) -> None:
    monkeypatch.setattr(program_channel, "TIMEOUT_S", 0.5 if "sleep" in code else 20.0)
    approval = desk.add()
    async with running(desk.notifier({"program": [sys.executable, "-c", code]})):
        await until(lambda: desk.problems)

    assert desk.problems == {"approval.notify.0 (program)": f"{sys.executable} {problem}"}
    assert desk.store.find(approval.id).status is Status.WAITING


async def test_a_program_that_is_not_there_is_reported(desk: Desk) -> None:
    desk.add()
    async with running(desk.notifier({"program": ["/no/such/program"]})):
        await until(lambda: desk.problems)

    assert desk.problems["approval.notify.0 (program)"].startswith("/no/such/program cannot be run: ")


def stand_in(folder: Path, name: str) -> Path:
    """A program of this name that keeps its words in a file."""
    folder.mkdir()
    program = folder / name
    out = folder / "words.json"
    program.write_text(
        f"#!{sys.executable}\nimport json,sys\nopen({str(out)!r}, 'w').write(json.dumps(sys.argv[1:]))\n"
    )
    program.chmod(0o755)
    return out


def desktop(folder: Path, system: str) -> DesktopChannel:
    path = LoginPath(own_path=f"{folder}{os.pathsep}/nowhere", shell="/no/such/program")
    return DesktopChannel(CommandEnvironment(path), ProcessGuard(), system)


async def test_notify_send_gets_plain_words_and_no_markup(desk: Desk, tmp_path: Path) -> None:
    out = stand_in(tmp_path / "bin", "notify-send")
    approval = desk.add(arguments=(("command", "--icon=x <b>hi</b> & \x1b[2J" + "y" * 900),))

    sent = await desktop(tmp_path / "bin", "linux").send(message_about(approval, Redactor()))

    *options, title, text = json.loads(out.read_text())
    assert (sent, options, title) == ("", ["--app-name=goat-mcp", "--"], "goat-mcp asks")
    assert "&lt;b&gt;hi&lt;/b&gt; &amp; \\x1b[2J" in text
    assert len(text) < 400 and text.endswith(f"\ngoat-mcp approve {approval.short_id}")


async def test_applescript_gets_the_text_as_an_argument(desk: Desk, tmp_path: Path) -> None:
    out = stand_in(tmp_path / "bin", "osascript")
    hostile = '" & (do shell script "touch /tmp/never") & "'
    approval = desk.add(arguments=(("command", hostile),))

    await desktop(tmp_path / "bin", "macos").send(message_about(approval, Redactor()))

    flag, script, title, text = json.loads(out.read_text())
    assert (flag, title) == ("-e", "goat-mcp asks")
    assert hostile in text and "shell" not in script and "item 2 of argv" in script


@pytest.mark.parametrize(("system", "problem"), [("linux", "there is no notify-send"), ("windows", "not available")])
async def test_a_desktop_without_notifications_is_said_to_be_one(tmp_path: Path, system: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        await desktop(tmp_path, system).check()
