"""Bash with `bash.compress_output`: what a model reads, what it is told of it, and whose output it is done for."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.model import CallingModel
from goat_mcp.core.result import ToolResult
from goat_mcp.processes.bash_options import BashOptions
from tests.commands.compression.recordings import BY_NAME
from tests.tools.shell_bench import ShellBench, context, fact

pytestmark = [pytest.mark.anyio, pytest.mark.posix_only("needs bash")]

NAMES = [f"{name}.go" for name in ("apples", "cherries", "currants", "medlars", "pears", "plums", "quinces")]
LS = "ls -la listing"


class Compressing(ShellBench):
    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, options=BashOptions.model_validate(options))
        (self.root / "listing").mkdir()
        for name in NAMES:
            (self.root / "listing" / name).touch()

    def program(self, name: str, prints: str, exit_code: int = 0) -> None:
        """A program of that name, below `bin`."""
        (self.root / "bin").mkdir(exist_ok=True)
        (self.root / "bin" / f"{name}.out").write_text(prints)
        script = self.root / "bin" / name
        script.write_text(f'#!/bin/sh\ncat "$0.out"\nexit {exit_code}\n')
        script.chmod(0o755)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Compressing]:
    bench = Compressing(tmp_path, compress_output=True)
    yield bench
    await bench.close()


def whole(result: ToolResult) -> str:
    """What the file holds that the notice names."""
    named = re.search(r"\[compressed from \d+ to \d+ characters; the whole: (\S+)\]", result.text)
    assert named, result.text
    assert named[1] == fact(result, "output_file")
    return Path(named[1]).read_text().rstrip("\n")


def read(file: str) -> str:
    return Path(file).read_text()


def is_compressed(result: ToolResult) -> bool:
    return "[compressed from " in result.text


async def test_lines_with_times_are_shown_below_the_file_that_is_there(bench: Compressing) -> None:
    for name in ("one.log", "two.log"):
        lines = (f"10:15:{second:02} ERROR on disk {second}\n" for second in range(30))
        (bench.root / "listing" / name).write_text("".join(lines))

    here = await bench.run("grep -rn ERROR listing/*.log")
    below = await bench.run("cd listing && grep -rn ERROR one.log two.log")

    assert here.text.split("\n")[:3] == ["listing/", "one.log", "1:10:15:00 ERROR on disk 0"]
    assert below.text.split("\n")[:2] == ["./one.log", "1:10:15:00 ERROR on disk 0"]
    for result in (here, below):
        assert is_compressed(result)
        assert result.text.count("30:10:15:29 ERROR on disk 29") == 2


async def test_bash_017_names_only_and_the_failures_of_go_test(bench: Compressing) -> None:
    printed = BY_NAME["go-test"].text
    bench.program("go", printed, exit_code=1)

    result = await bench.run("ls -la listing; bin/go test ./...")

    lines = result.text.split("\n")
    assert result.is_error
    assert fact(result, "exit_code") == 1
    assert lines[: len(NAMES)] == NAMES
    assert [line for line in lines if "PASS" in line] == []
    assert "--- FAIL: TestLevelOfNothing (0.00s)" in lines
    assert "    stock_test.go:17: Level(nil) = 0; want 1" in lines
    assert lines[-4] == "47 tests, 1 skipped: 44 passed, 2 failed"
    assert lines[-2:] == ["Exit code 1", "[E_EXIT]"]
    assert whole(result).endswith(printed)


async def test_bash_017_off_is_raw(tmp_path: Path) -> None:
    bench = Compressing(tmp_path)
    bench.program("go", BY_NAME["go-test"].text)

    result = await bench.run("bin/go test ./...")

    await bench.close()
    assert result.text == BY_NAME["go-test"].text
    assert fact(result, "output_file") is None


async def test_the_notice_says_how_much_and_where_the_whole_is(bench: Compressing) -> None:
    result = await bench.run(LS)

    text, notice = result.text.rsplit("\n", 1)
    assert text.rstrip("\n").split("\n") == NAMES
    printed = whole(result)
    assert printed.split("\n")[0].startswith("total ")
    assert notice == (
        f"[compressed from {len(printed)} to {len(text.rstrip())} characters; the whole: {fact(result, 'output_file')}]"
    )


async def test_source_code_comes_with_line_numbers_and_the_file_as_printed_stays_at_hand(bench: Compressing) -> None:
    source = 'package main\n\nfunc main() {\n\tprintln("hello")\n}\n'
    (bench.root / "main.go").write_text(source)

    shown = await bench.run("cat main.go")
    end = await bench.run("tail -n 2 main.go")

    *lines, notice = shown.text.splitlines()
    assert lines == ["1\tpackage main", "2\t", "3\tfunc main() {", '4\t\tprintln("hello")', "5\t}"]
    assert notice == f"[lines are numbered; as printed: {fact(shown, 'output_file')}]"
    assert read(fact(shown, "output_file")) == source
    assert end.text.splitlines()[:2] == ['4\t\tprintln("hello")', "5\t}"]


async def test_what_saves_less_than_the_notice_costs_is_left_alone(bench: Compressing) -> None:
    result = await bench.run("ls -la listing/apples.go")

    assert not is_compressed(result)
    assert fact(result, "output_file") is None


@pytest.mark.parametrize(
    "command",
    [
        "ls -la listing; ls /nowhere-at-all",
        "ls -la listing /nowhere-at-all",
        "ls -la listing; exit 3",
        "ls -la listing; kill -9 $$",
        "ls -la listing; printf surprise",
        "f() { ls -la listing; }; f",
        "ls -la listing || true",
        "for name in listing; do ls -la $name; done",
    ],
)
async def test_what_failed_or_is_not_known_is_left_as_it_is(bench: Compressing, command: str) -> None:
    raw = ShellBench(bench.root.parent)

    result, expected = await bench.run(command), await raw.run(command)

    await raw.close()
    assert not is_compressed(result)
    assert result.text == expected.text


async def test_a_timed_out_test_run_keeps_all_it_printed(bench: Compressing) -> None:
    bench.program("pytest", BY_NAME["pytest"].text)

    result = await bench.run("bin/pytest; sleep 600", timeout=5000)

    assert not is_compressed(result)
    assert BY_NAME["pytest"].text in result.text


async def test_an_output_too_long_to_show_is_compressed_as_a_whole(bench: Compressing) -> None:
    many = "".join(f"=== RUN   Test{number}\n--- PASS: Test{number} (0.00s)\n" for number in range(2000))
    bench.program(
        "go", f"{many}=== RUN   TestLast\n--- FAIL: TestLast (0.00s)\nFAIL\nFAIL\texample.com/a\t0.1s\n", exit_code=1
    )

    result = await bench.run("bin/go test -v ./...")

    assert result.text.split("\n")[:4] == [
        "--- FAIL: TestLast (0.00s)",
        "FAIL",
        "FAIL\texample.com/a\t0.1s",
        "2001 tests: 2000 passed, 1 failed",
    ]
    assert fact(result, "truncated") is False


async def test_a_compressed_output_too_long_to_show_is_cut(bench: Compressing) -> None:
    for number in range(400):
        (bench.root / "listing" / f"a-rather-long-name-of-a-file-{number:03}.txt").touch()

    result = await bench.run(LS, ctx=context(overrides={"output.max_chars": 2000}))

    assert len(result.text) <= 2000
    assert "characters cut ...]" in result.text
    assert fact(result, "truncated") is True
    assert len(whole(result).split("\n")) == 400 + len(NAMES) + 3


async def test_a_file_that_was_shown_compressed_counts_as_read(bench: Compressing) -> None:
    (bench.root / "a.log").write_text("waiting\n" * 500)

    result = await bench.run("cat a.log")

    assert is_compressed(result)
    assert result.text.startswith("1-500\twaiting\n")
    assert bench.sessions.of("local").reads.paths() == (str(bench.root / "a.log"),)


async def test_what_a_background_task_prints_stays_as_it_is(bench: Compressing) -> None:
    id = await bench.background(LS)

    result = await bench.read(id)

    assert "total " in result.text


# --- whose output


LOCAL = CallingModel(("qwen/qwen3.5-9b",), is_local=True)
REMOTE = CallingModel(("opus", "claude-opus-5"), is_local=False)


@pytest.mark.parametrize(
    ("settings", "ctx", "expected"),
    [
        ({}, context(), False),
        ({}, context(model=REMOTE), False),
        ({}, context(model=LOCAL), True),
        ({"compress_output": False}, context(model=LOCAL), False),
        ({"compress_output": True}, context(model=REMOTE), True),
        ({"compress_output": True, "compress_output_of_model": {"claude-*": False}}, context(model=REMOTE), False),
        ({"compress_output": False, "compress_output_of_model": {"QWEN/*": True}}, context(model=LOCAL), True),
        ({"compress_output_of_model": {"claude-opus*": True, "*": False}}, context(model=REMOTE), True),
        ({"compress_output_of_model": {"gpt-*": True}}, context(model=REMOTE), False),
        ({}, context(overrides={"bash.compress_output": True}), True),
        ({"compress_output": True}, context(overrides={"bash.compress_output": False}), False),
        (
            {"compress_output_of_model": {"opus": False}},
            context(model=REMOTE, overrides={"bash.compress_output": True}),
            False,
        ),
        ({"compress_output_of_model": {"gpt-5*": True}}, context(meta={"goat-mcp/model": "gpt-5.5"}), True),
        (
            {"compress_output_of_model": {"gpt-5*": True}},
            context(meta={"x-codex-turn-metadata": {"model": "gpt-5.5-codex", "turn_id": "t"}}),
            True,
        ),
        (
            {"compress_output_of_model": {"gpt-5*": True}},
            context(meta={"x-codex-turn-metadata": '{"model": "gpt-5.5-codex"}'}),
            True,
        ),
        ({"compress_output_of_model": {"*": True}}, context(meta={"x-codex-turn-metadata": "{"}), False),
        ({"compress_output_of_model": {"*": True}}, context(meta={"goat-mcp/model": ["gpt"]}), False),
        ({"compress_output_of_model": {"gpt*": True}}, context(model=REMOTE, meta={"goat-mcp/model": "gpt"}), False),
    ],
)
async def test_the_model_decides_then_the_setting_then_the_place(
    tmp_path: Path, settings: dict[str, Any], ctx: ToolContext, expected: bool
) -> None:
    bench = Compressing(tmp_path, **settings)

    # The table was made when the tests were collected; a call's time begins with the call.
    result = await bench.run(LS, ctx=replace(ctx, started_at_s=time.monotonic()))

    await bench.close()
    assert is_compressed(result) is expected
