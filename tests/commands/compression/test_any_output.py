"""Output as no program prints it: nothing raises, nothing takes long, and what names a failure stays."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.commands.compression.output import compressed_output
from tests.commands.compression.recordings import RECORDINGS
from tests.repetitions import examples

COMMANDS = [
    *sorted({recording.command for recording in RECORDINGS}),
    *(
        "ls -la; go test ./...",
        "git status && git diff",
        "tail -n +7 a.log",
        "cat a.py",
        "head -n 5 a b",
        "grep -rnC2 x .",
        "rg x",
    ),
    *("npm test", "npx vitest run", "echo one; pytest -q; echo two; git log", "grep -rc x .", "ls -laRh | head"),
]
FAILURES = (
    "FAILED tests/test_a.py::test_b - assert 1 == 2",
    "E       ValueError: no such thing",
    "--- FAIL: TestA (0.00s)",
    "panic: runtime error: index out of range",
    "fatal: not a git repository",
    "ls: cannot access 'x': No such file or directory",
    "error[E0308]: mismatched types",
    "test stock::nothing ... FAILED",
    "  ✕ adds up (2 ms)",
    "grep: x: Permission denied",
    "Segmentation fault (core dumped)",
)
RECORDED_LINES = sorted({line for recording in RECORDINGS for line in recording.text.split("\n")})
LINES = st.one_of(
    st.sampled_from(RECORDED_LINES),
    st.sampled_from(FAILURES),
    st.text(st.characters(exclude_characters="\n"), max_size=60),
    st.sampled_from(
        ["", "    ", "@@ -1,3 +1,4 @@", "diff --git a/x b/x", "\tmodified:   ", "commit " + "0" * 40, "total"]
    ),
)


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(command=st.sampled_from(COMMANDS), lines=st.lists(LINES, max_size=40), failed=st.booleans())
def test_no_output_raises_and_no_line_that_names_a_failure_is_lost(
    command: str, lines: Sequence[str], failed: bool
) -> None:
    text = "\n".join(lines)

    shown = compressed_output(command, text, failed=failed)

    is_numbered = shown is not None and shown.is_numbered
    shown = text if shown is None else shown.text
    assert [line for line in FAILURES if line in lines and line.strip() not in shown] == []
    assert is_numbered or len(shown) <= len(text)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), failed=st.booleans())
def test_a_failure_anywhere_in_a_real_output_stays(data: st.DataObject, failed: bool) -> None:
    recording = data.draw(st.sampled_from(RECORDINGS))
    lines = recording.text.split("\n")
    # Among unchanged lines of a diff it is code, and names no failure of anything.
    indents = [""] if recording.name in ("git-diff", "git-show") else ["", "    ", "        "]
    failure = data.draw(st.sampled_from(indents)) + data.draw(st.sampled_from(FAILURES))
    at = data.draw(st.integers(0, len(lines)))
    text = "\n".join([*lines[:at], failure, *lines[at:]])

    shown = compressed_output(recording.command, text, failed=failed)

    assert failure.strip() in (text if shown is None else shown.text)


@settings(max_examples=examples(200), deadline=None)
@given(command=st.text(max_size=80), text=st.text(max_size=200))
def test_no_script_raises(command: str, text: str) -> None:
    compressed_output(command, text)


@pytest.mark.parametrize(
    "line", ["a" * 300_000, " " * 300_000, "(" * 300_000, "a:1:" * 75_000, "_ " * 150_000, "0x" * 150_000]
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_line_made_to_be_slow_is_not(command: str, line: str) -> None:
    start = time.process_time()

    compressed_output(command, f"{line}\n{line[:4000]}\n{line[:90]}")

    assert time.process_time() - start < 5


@pytest.mark.parametrize("line", ["a" * 90, " " * 90, "@@ -1 +1 @@", "commit " + "a" * 40, "x.py:1:a", "    ", "_ _"])
@pytest.mark.parametrize("command", COMMANDS)
def test_many_lines_are_not_slow(command: str, line: str) -> None:
    start = time.process_time()

    compressed_output(command, "\n".join([line] * 4000))

    assert time.process_time() - start < 5
