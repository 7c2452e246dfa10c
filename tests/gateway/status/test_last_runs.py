"""What outlasts a process of each upstream: its last failure and the end of its stderr (0600, bounded, no secrets)."""

from __future__ import annotations

import stat
import time
from pathlib import Path
from typing import Any

from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.status import last_runs as module
from goat_mcp.gateway.status.last_runs import LastRuns, record_key
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.status import ReasonCode, UpstreamFailure, UpstreamState, UpstreamStatus

SECRET = "s3cr3t-canary-4711"
FILE = Path("/home/ada/upstreams.json")


def config(name: str, command: str = "run") -> UpstreamConfig:
    return UpstreamConfig(name=name, server=name, target=StdioLaunch(command))


def status(name: str, state: UpstreamState = UpstreamState.READY, **members: Any) -> UpstreamStatus:
    return UpstreamStatus(name=name, server=name, state=state, **members)


def failed(name: str, detail: str, at_s: float | None = None) -> UpstreamStatus:
    failure = UpstreamFailure(ReasonCode.START_FAILED, detail, time.time() if at_s is None else at_s)
    return status(
        name,
        UpstreamState.FAILED,
        reason_code=ReasonCode.START_FAILED,
        detail=detail,
        last_failure=failure,
    )


def runs(tmp_path: Path, *origin: Path) -> LastRuns:
    return LastRuns(StateDirectory(tmp_path / "state"), Redactor([SECRET]), origin or (FILE,))


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state" / "last_runs").glob("*"))


def test_a_failure_and_the_end_of_stderr_are_there_for_the_next_process(tmp_path: Path) -> None:
    detail = f"the process exited with status 3; its stderr ends: no {SECRET}\nTraceback"

    runs(tmp_path).update([failed("one", detail, 1000.0)], [config("one")])

    run = runs(tmp_path).all()[record_key(config("one"))]
    assert (run.name, run.reason_code, run.failed_at_s) == ("one", "start_failed", 1000.0)
    assert (run.cause, run.stderr_lines) == ("the process exited with status 3", ["no [redacted]", "Traceback"])
    (file,) = files(tmp_path)
    assert SECRET not in file.read_text()
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)


def test_the_same_failure_try_after_try_is_written_once(tmp_path: Path) -> None:
    written = runs(tmp_path)
    written.update([failed("one", "gone", 1000.0)], [config("one")])
    (file,) = files(tmp_path)
    before = file.stat().st_mtime_ns, file.stat().st_ino

    written.update([failed("one", "gone", 2000.0)], [config("one")])
    runs(tmp_path).update([failed("one", "gone", 3000.0)], [config("one")])

    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_it_is_noted_that_it_works_again_and_that_it_fails_again(tmp_path: Path) -> None:
    written, key = runs(tmp_path), record_key(config("one"))
    written.update([failed("one", "gone", 1000.0)], [config("one")])

    written.update([status("one", stderr_tail="started\n")], [config("one")])
    works = written.all()[key]
    written.update([failed("one", "gone", works.worked_at_s + 5)], [config("one")])

    assert works.worked_at_s > works.failed_at_s == 1000.0
    assert works.stderr_lines == ["started"]
    assert written.all()[key].failed_at_s == works.worked_at_s + 5


def test_nothing_is_written_of_an_upstream_that_never_failed_and_said_nothing(tmp_path: Path) -> None:
    runs(tmp_path).update([status("one"), status("two", UpstreamState.IDLE)], [config("one"), config("two")])

    assert files(tmp_path) == []


def test_what_is_known_goes_with_the_upstream(tmp_path: Path) -> None:
    written = runs(tmp_path)
    both = [config("one"), config("two"), config("three")]
    written.update([failed(each.name, "gone") for each in both], both)

    written.update([failed("one", "gone"), failed("three", "gone")], [config("one"), config("three")])
    while_running = [run.name for run in written.all().values()]
    runs(tmp_path, Path("/elsewhere.json")).update([failed("x", "gone")], [config("x")])
    runs(tmp_path).update([failed("one", "gone")], [config("one"), config("three", command="other")])

    assert while_running == ["one", "three"]
    assert [run.name for run in written.all().values()] == ["one", "x"]


def test_the_number_and_the_size_of_files_are_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "KEPT_FILES", 3)
    for number in range(5):
        written = runs(tmp_path, Path(f"/{number}.json"))
        written.update([failed(f"u{number}", "x" * 100_000, 1000.0 + number)], [config(f"u{number}")])
    runs(tmp_path).update([], [])

    assert [file.name[:2] for file in files(tmp_path)] == ["u2", "u3", "u4"]
    assert max(file.stat().st_size for file in files(tmp_path)) < 20_000


def test_a_damaged_file_is_replaced_and_a_folder_that_cannot_be_written_harms_nobody(tmp_path: Path) -> None:
    written = runs(tmp_path)
    written.update([failed("one", "gone", 1000.0)], [config("one")])
    (file,) = files(tmp_path)
    file.write_text('{"name": 3}')

    unreadable = written.all()
    written.update([failed("one", "other", 2000.0)], [config("one")])
    again = written.all()[file.stem].detail
    (tmp_path / "plain").write_text("")
    LastRuns(StateDirectory(tmp_path / "plain"), Redactor()).update([failed("one", "gone")], [config("one")])

    assert (unreadable, again) == ({}, "other")


def test_R_CRASH_1_a_file_cut_at_any_byte_is_no_crash(tmp_path: Path) -> None:
    written = runs(tmp_path)
    written.update([failed("one", "gone", 1000.0)], [config("one")])
    (file,) = files(tmp_path)
    whole = file.read_bytes()

    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert written.all() == {}
