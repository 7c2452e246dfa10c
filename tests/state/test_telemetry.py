"""What a log line looks like: JSON for programs, words for the person at a terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest

from goat_mcp.state.telemetry import Telemetry, in_words


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Screen])
def test_a_line_is_json_unless_a_person_reads_it(monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]) -> None:
    stderr, kept = stream(), list[str]()
    monkeypatch.setattr(sys, "stderr", stderr)
    telemetry = Telemetry()
    telemetry.copy_to(kept.append)

    telemetry.warning("upstream failed", upstream="github", tries=3)

    (line,) = stderr.getvalue().splitlines()
    if stderr.isatty():
        assert line == "goat-mcp: warning: upstream failed (upstream: github, tries: 3)"
    else:
        assert json.loads(line).items() >= {"event": "upstream failed", "level": "warning", "tries": 3}.items()
    assert json.loads(kept[0])["upstream"] == "github"


def test_what_others_wrote_cannot_steer_the_terminal() -> None:
    shown = in_words({"event": "a\x1b[2Jb\x7f", "level": "error", "why": "x\ny", "exception": "Traceback\n  \x07line"})

    assert shown.splitlines() == [r"goat-mcp: error: a\u001b[2Jb\u007f (why: x\ny)", "Traceback", r"  \u0007line"]


def test_a_bug_is_logged_with_its_traceback_and_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    secret = "ghp_" + "a" * 36
    try:
        raise ValueError(secret)
    except ValueError as problem:
        Telemetry().unexpected("c1", "Bash", problem)

    line = json.loads(stderr.getvalue())
    assert line.items() >= {"level": "error", "call_id": "c1", "tool": "Bash"}.items()
    assert line["exception"].startswith("Traceback (most recent call last)")
    assert secret not in line["exception"]
    assert line["timestamp"].endswith("Z")
