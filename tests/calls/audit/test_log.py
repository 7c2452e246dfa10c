"""What one line of the record holds, and what becomes of calls while nothing can be recorded."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.audit import AuditLog, Decided
from goat_mcp.calls.audit.chain import MAX_LINE_BYTES, NO_LINE, Unsafe, hash_of
from goat_mcp.calls.audit.log import AuditSettings
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.redaction import Redactor
from tests.calls.audit.records import lines_of, write_calls

CTX = ToolContext(call_id="call-1", session_key="stdio", principal="local")


def test_a_call_is_two_lines_with_these_fields(tmp_path: Path) -> None:  # R-AUDIT-1, R-AUDIT-2
    log = AuditLog(tmp_path / "audit.jsonl")
    log.decision(
        "Bash",
        {"command": "ls"},
        CTX,
        decision="allow",
        rule="Bash(ls)",
        by="rule",
        hooks=[{"hook": "a", "result": "allow", "ms": 1.5}],
    )
    log.outcome("Bash", CTX, error_code="E_EXIT")

    first, second = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    decision, outcome = json.loads(first), json.loads(second)
    assert (decision.pop("ts")[-1], outcome.pop("ts")[-1], outcome.pop("duration_ms") >= 0) == ("Z", "Z", True)
    whose = {"call_id": "call-1", "session": "stdio", "principal": "local", "pid": os.getpid(), "tool": "Bash"}
    assert decision == {
        "seq": 1,
        "prev": NO_LINE,
        "event": "decision",
        **whose,
        "decision": "allow",
        "rule": "Bash(ls)",
        "by": "rule",
        "hooks": [{"hook": "a", "result": "allow", "ms": 1.5}],
        "args_sha256": hashlib.sha256(b'{"command": "ls"}').hexdigest(),
        "args_chars": 17,
    }
    assert outcome == {"seq": 2, "prev": hash_of(first), "event": "outcome", **whose, "error_code": "E_EXIT"}


def test_AU_01_a_forged_record_in_a_call_stays_in_its_line(tmp_path: Path) -> None:
    forged = 'x\n{"decision":"allow","forged":true}\r\u2028\x85'
    log = AuditLog(tmp_path / "audit.jsonl")
    log.decision(forged, {"command": f"echo '{forged}'"}, CTX, decision="deny", rule=forged)
    log.outcome(forged, CTX, error_code="E_TOOL_NOT_FOUND")

    text = (tmp_path / "audit.jsonl").read_bytes()
    assert (text.count(b"\n"), text.count(b"\r"), text.isascii()) == (2, 0, True)
    assert [line["rule"] for line in lines_of(tmp_path / "audit.jsonl")[:1]] == [forged]
    assert b'"forged":true' not in text


def test_AU_02_control_and_direction_characters_are_escaped(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    log.decision("Read", {"file_path": "\x1b[2Jx\u202e"}, CTX, decision="deny", rule="\x1b[2Jx\u202e")

    text = (tmp_path / "audit.jsonl").read_text()
    assert "\x1b" not in text and "\u202e" not in text
    assert r"\u001b[2Jx\u202e" in text


def test_AU_03_a_secret_in_a_rule_is_not_recorded(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", redactor=Redactor(["configured-canary"]))
    rule = "denied: curl -H 'Authorization: Bearer sk-ant-canary1234567890' --data configured-canary"
    log.decision("Bash", {"command": "configured-canary"}, CTX, decision="deny", rule=rule)

    (line,) = lines_of(tmp_path / "audit.jsonl")
    assert line["rule"] == "denied: curl -H 'Authorization: Bearer [redacted]' --data [redacted]"
    assert "canary" not in json.dumps(line)


def test_a_line_stays_under_64_kb_whatever_a_client_sends(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    long = "\U0001f600" * 1_000_000
    ctx = ToolContext(call_id="call-1", session_key=long, principal=long)
    log.decision(
        long,
        {long: long},
        ctx,
        decision="deny",
        rule=long,
        by=long,
        hooks=[{"hook": long, "result": long, "ms": 1}] * 1000,
    )
    log.outcome(long, ctx, error_code="E_TOOL_NOT_FOUND")

    lines = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) < MAX_LINE_BYTES
    assert log.problem == ""


def test_file_and_new_folders_are_private(tmp_path: Path) -> None:
    write_calls(tmp_path / "new" / "audit.jsonl", 1)

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new", tmp_path / "new" / "audit.jsonl")]
    assert modes == [0o700, 0o600]


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").touch(0o644)
    write_calls(tmp_path / "audit.jsonl", 1)

    assert stat.S_IMODE((tmp_path / "audit.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["link", "hard link", "fifo", "device", "folder of others"])
def test_what_is_not_our_own_plain_file_is_not_written_to(tmp_path: Path, kind: str) -> None:  # R-AUDIT-1: no links
    path, victim = tmp_path / "sub" / "audit.jsonl", tmp_path / "victim"
    path.parent.mkdir(mode=0o700)
    victim.write_text("mine")
    match kind:
        case "link":
            path.symlink_to(victim)
        case "hard link":
            path.hardlink_to(victim)
        case "fifo":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/full")
        case _:
            path.parent.chmod(0o777)

    with pytest.raises(OSError) as caught:
        AuditLog(path).check()

    assert isinstance(caught.value, Unsafe) or kind == "link"
    assert victim.read_text() == "mine"


@contextmanager
def room_for(path: Path, more_bytes: int) -> Generator[None]:
    """The kernel lets no file of this process grow beyond what `path` has now and `more_bytes`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + more_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def decide(log: AuditLog, *, decision: Decided = "allow", changes: bool = True) -> str:
    """Record a call. Returns the code it was refused with."""
    try:
        log.decision("Write", {}, CTX, decision=decision, rule="mode acceptEdits", changes=changes)
    except ToolError as refused:
        return str(refused.code)
    return ""


@pytest.mark.parametrize("more_bytes", [0, 10])
def test_AU_05_without_room_for_a_line_changes_are_refused_and_reads_are_not(tmp_path: Path, more_bytes: int) -> None:
    path, warned = tmp_path / "audit.jsonl", list[str]()

    def warn(event: str, **facts: Any) -> None:
        warned.append(event)

    write_calls(path, 1)
    before = path.read_bytes()
    log = AuditLog(path, warn=warn)

    with room_for(path, more_bytes):
        codes = [decide(log), decide(log, changes=False), decide(log, decision="deny")]
        log.outcome("Write", CTX, error_code="E_AUDIT")
        problem, during = log.problem, path.read_bytes()

    assert codes == ["E_AUDIT", "", ""]
    assert problem != ""
    assert during == before  # no half line stays
    assert warned == ["calls are not recorded"]

    # With room again the record says how much is missing from it.
    assert decide(log) == ""
    assert [(line["event"], line.get("lost")) for line in lines_of(path)[2:]] == [("gap", 4), ("decision", None)]
    assert warned == ["calls are not recorded", "calls are recorded again"]


def test_AU_05_who_wants_it_has_unrecorded_calls_run(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 1)
    log = AuditLog(path, AuditSettings(on_failure="warn"))

    with room_for(path, 0):
        assert decide(log) == ""
    assert log.problem != ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    mount = tmp_path / "disk"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", mount], capture_output=True)
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.decode().strip()}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


def test_AU_05_on_a_full_disk_changes_are_refused(small_disk: Path) -> None:
    path = small_disk / "audit.jsonl"
    log = AuditLog(path)
    assert decide(log) == ""
    filler = (small_disk / "filler").open("wb", buffering=0)
    with pytest.raises(OSError):
        while filler.write(bytes(256)):
            pass

    codes = {decide(log) for _ in range(100)}
    assert codes == {"", "E_AUDIT"} or codes == {"E_AUDIT"}  # the last page of the file had room left
    assert decide(log, changes=False) == ""
    assert lines_of(path)  # whole lines only

    (small_disk / "filler").unlink()
    filler.close()
    assert decide(log) == ""
