"""The FILE attacks through the whole pipeline, opened both ways the kernel may offer (R-FILE-1, R-FILE-2).

How links, races and writes are confined in all their variants is shown in tests/files/workspace; here each case runs
as a client would send it, and nothing outside the root may be seen or changed by it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import socket
import stat
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.result import ToolResult
from goat_mcp.embed import EmbeddedTools, open_tools
from goat_mcp.files.workspace.beneath import Kernel
from tests.files.workspace.exchange import swapping
from tests.repetitions import times

pytestmark = pytest.mark.anyio

CANARY = "CANARY-of-the-file-cases"
BOUND_S = 60.0
READS_IN_A_RACE = times(1000, in_full_run=30_000)
GIB = 1024**3


@dataclass
class Field:
    """A gateway over one root, with the folder beside it that no call may reach."""

    root: Path
    out: Path
    log: Path
    tools: EmbeddedTools

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        with anyio.fail_after(BOUND_S):
            result = await self.tools.call(name, arguments)
        assert CANARY not in json.dumps(result.wire()), "the canary has been read"
        return result

    async def refused(self, name: str, **arguments: Any) -> str:
        """The code of a call that must fail, having shown nothing of where the canary is."""
        result = await self.call(name, **arguments)
        assert result.is_error, result.text
        assert "Traceback" not in result.text
        return str(result.error_code)

    def path(self, below: str) -> str:
        return f"{self.root}/{below}"

    def outside(self) -> dict[str, bytes]:
        found = sorted(self.out.rglob("*"))
        return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


@pytest.fixture(params=["openat2", "ENOSYS", "EPERM"])
def opening(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """`openat2` as it is, or a kernel or container that does not let us have it."""
    if request.param == "openat2":
        if not Kernel().has_openat2:
            pytest.skip("this kernel has no openat2")
        return request.param
    problem = getattr(errno, request.param)

    def refuse(self: Kernel, dir_fd: int, relative: str, flags: int) -> int:
        raise OSError(problem, os.strerror(problem))

    monkeypatch.setattr(Kernel, "open_beneath", refuse)
    return request.param


@pytest.fixture
async def field(tmp_path: Path, opening: str) -> AsyncGenerator[Field]:
    root, out = tmp_path / "ws", tmp_path / "ws-evil"
    root.mkdir()
    out.mkdir()
    (out / "secret.txt").write_text(CANARY)
    (out / "n.ipynb").write_text(
        f'{{"cells": [], "metadata": {{"x": "{CANARY}"}}, "nbformat": 4, "nbformat_minor": 5}}'
    )
    settings = {"workspace": [str(root)], "mode": "acceptEdits", "files": {"read_before_write": "off"}}
    async with open_tools(settings, state_directory=tmp_path / "state") as tools:
        field = Field(root, out, tmp_path / "state" / "audit.jsonl", tools)
        before = field.outside()
        yield field
        with anyio.fail_after(60):
            assert not (await tools.call("Glob", {"pattern": "*.none"})).is_error, "the next call is answered"
    assert field.outside() == before, "something outside the root has changed"
    assert CANARY not in field.log.read_text()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        pytest.param("{root}/../ws-evil/secret.txt", "E_PATH_OUTSIDE", id="FS-01"),
        pytest.param("@../ws-evil/secret.txt", "E_PATH_OUTSIDE", id="FS-01 from the root"),
        pytest.param("{root}-evil/secret.txt", "E_PATH_OUTSIDE", id="FS-02"),
        pytest.param("{root}/d/secret.txt", "E_PATH_OUTSIDE", id="FS-04"),
        pytest.param("/proc/self/environ", "E_PATH_OUTSIDE", id="FS-09"),
        pytest.param("{root}/proc/environ", "E_PATH_OUTSIDE", id="FS-09 through a link"),
        pytest.param("/dev/zero", "E_PATH_OUTSIDE", id="FS-12"),
        pytest.param("{root}/a\0/../../ws-evil/secret.txt", "E_INPUT", id="FS-17"),
        pytest.param("{root}/..%2fws-evil%2fsecret.txt", "E_NOT_FOUND", id="FS-18"),
        pytest.param("{root}/~root/.ssh/id_rsa", "E_NOT_FOUND", id="FS-20"),
        pytest.param("~root/.ssh/id_rsa", "E_PATH_RELATIVE", id="FS-20 as it is"),
        pytest.param("file:///etc/passwd", "E_PATH_RELATIVE", id="R-FILE-4 a URL"),
        pytest.param("{root}/\uff53ub/f", "E_NOT_FOUND", id="R-FILE-4 wide letters"),
        pytest.param("$HOME/f", "E_PATH_RELATIVE", id="R-FILE-4 a variable"),
    ],
)
async def test_a_read_that_leads_out_is_refused(field: Field, asked: str, code: str) -> None:
    (field.root / "d").symlink_to(field.out)
    (field.root / "proc").symlink_to("/proc/self")
    (field.root / "sub").mkdir()
    (field.root / "sub" / "f").write_text("inside")

    assert await field.refused("Read", file_path=asked.format(root=field.root)) == code


@pytest.mark.parametrize(
    ("name", "asked", "code"),
    [
        pytest.param("Write", "dangling", "E_PATH_OUTSIDE", id="FS-05"),
        pytest.param("Write", "d/sub/new.txt", "E_PATH_OUTSIDE", id="FS-06"),
        pytest.param("Write", "hl", "E_HARD_LINKED", id="FS-24"),
        pytest.param("NotebookEdit", "n.ipynb", "E_PATH_OUTSIDE", id="FS-46"),
        pytest.param("Write", "x" * 5000, "E_INPUT", id="FS-47"),
        pytest.param("Edit", "d/secret.txt", "E_PATH_OUTSIDE", id="R-FILE-6 an edit"),
        pytest.param("Write", "../ws-evil/secret.txt", "E_PATH_OUTSIDE", id="R-FILE-6 dots"),
    ],
)
async def test_a_write_that_leads_out_is_refused_and_creates_nothing(
    field: Field, name: str, asked: str, code: str
) -> None:
    """R-FILE-6, R-FILE-7: the fixture compares all that lies outside."""
    (field.root / "dangling").symlink_to(field.out / "new.txt")
    (field.root / "d").symlink_to(field.out)
    (field.root / "n.ipynb").symlink_to(field.out / "n.ipynb")
    os.link(field.out / "secret.txt", field.root / "hl")
    inside = sorted(path.name for path in field.root.iterdir())
    arguments = {
        "Write": {"file_path": field.path(asked), "content": "x"},
        "Edit": {"file_path": field.path(asked), "old_string": "CANARY", "new_string": "x"},
        "NotebookEdit": {
            "notebook_path": field.path(asked),
            "new_source": "x",
            "edit_mode": "insert",
            "cell_type": "code",
        },
    }

    assert await field.refused(name, **arguments[name]) == code
    assert sorted(path.name for path in field.root.iterdir()) == inside


async def test_fs_07_no_read_wins_the_race_against_a_link(field: Field) -> None:
    """R-FILE-1. How the race is won without it: check the path, then open it."""
    (field.root / "race").mkdir()
    (field.root / "race" / "secret.txt").write_text("inside")
    (field.root / "other").symlink_to(field.out)
    answers = Counter[str]()

    with swapping(field.root / "race", field.root / "other"):
        for _ in range(READS_IN_A_RACE):
            result = await field.call("Read", file_path=field.path("race/secret.txt"))
            answers[str(result.error_code) if result.is_error else result.text] += 1

    assert set(answers) <= {"1\tinside", "E_PATH_OUTSIDE", "E_NOT_FOUND", "E_IO"}
    assert answers.total() == READS_IN_A_RACE


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("device", id="FS-12"),
        pytest.param("fifo", id="FS-13"),
        pytest.param("socket", id="R-FILE-3 a socket"),
    ],
)
async def test_what_is_no_regular_file_is_refused_at_once_and_holds_up_nobody(field: Field, kind: str) -> None:
    """R-FILE-3"""
    make_special(field.root / "p", kind)
    beside: list[str] = []
    code = ""

    async def another_call() -> None:
        beside.append((await field.call("Glob", pattern="p")).text)

    async with anyio.create_task_group() as group:
        group.start_soon(another_call)
        # No writer ever comes: whoever waited for one would be told of the time that is over, not of the kind.
        code = await field.refused("Read", file_path=field.path("p"))

    assert code == "E_NOT_REGULAR"
    assert len(beside) == 1


async def test_fs_16_a_sparse_file_of_20_gib_costs_no_memory(field: Field) -> None:
    """R-FILE-11"""
    with (field.root / "big").open("wb") as file:
        file.truncate(20 * GIB)
    await field.call("Read", file_path=field.path("missing"))
    before = peak_memory_bytes()

    result = await field.call("Read", file_path=field.path("big"))

    assert len(json.dumps(result.wire())) < 1_000_000
    assert peak_memory_bytes() - before < 50 * 1024**2


@pytest.mark.parametrize("pattern", ["../**/*", "../ws-evil/*", "{root}/../ws-evil/*", "d/**", "d/*.txt"])
async def test_fs_28_no_file_pattern_leads_out(field: Field, pattern: str) -> None:
    (field.root / "d").symlink_to(field.out)

    result = await field.call("Glob", pattern=pattern.format(root=field.root))

    assert result.is_error or result.text == "No files found"
    assert "secret.txt" not in result.text


async def test_fs_30_a_search_in_a_file_outside_is_refused(field: Field) -> None:
    assert await field.refused("Grep", pattern="root:", path="/etc/passwd") == "E_PATH_OUTSIDE"
    assert await field.refused("Grep", pattern="C", path=field.path("../ws-evil")) == "E_PATH_OUTSIDE"


async def test_fs_31_a_search_follows_no_link_out(field: Field) -> None:
    """R-FILE-10. The pattern is the word the canary begins with, so that naming it shows nothing."""
    (field.root / "d").symlink_to(field.out)
    (field.root / "f").symlink_to(field.out / "secret.txt")
    (field.root / "own").write_text("CANARY of our own\n")

    result = await field.call("Grep", pattern="CANARY", path=str(field.root), output_mode="content")

    assert result.text == f"{field.root}/own:1:CANARY of our own"


async def test_a_search_survives_links_in_a_circle(field: Field) -> None:
    """R-FILE-10"""
    (field.root / "a" / "b").mkdir(parents=True)
    (field.root / "a" / "b" / "up").symlink_to(field.root)
    (field.root / "a" / "self").symlink_to("self")
    (field.root / "a" / "f.txt").write_text("needle\n")

    found = await field.call("Grep", pattern="needle")
    listed = await field.call("Glob", pattern="**/*.txt")

    assert (found.text, listed.text) == (f"{field.root}/a/f.txt", f"{field.root}/a/f.txt")


@pytest.mark.parametrize("place", ["pattern", "glob", "path", "type"])
@pytest.mark.parametrize("option", ["--pre=sh", "--pre=./run", "-f/etc/passwd", "--search-zip"])
async def test_fs_32_what_looks_like_an_option_is_none(field: Field, place: str, option: str) -> None:
    """R-FILE-10"""
    (field.root / "run").write_text(f"#!/bin/sh\ntouch {field.root}/ran\n")
    (field.root / "run").chmod(0o755)
    (field.root / "x.txt").write_text("x\n")

    result = await field.call("Grep", **{"pattern": "x", place: option})

    assert result.is_error or result.text in ("No matches found", "No files found"), result.text
    assert not (field.root / "ran").exists()


async def test_fs_35_an_edit_leaves_what_another_wrote_since(field: Field) -> None:
    path = field.root / "f"
    settings = {"workspace": [str(field.root)], "mode": "acceptEdits"}

    async with open_tools(settings, state_directory=field.log.parent.with_name("state-2")) as tools:
        path.write_text("a here\n")
        await tools.call("Read", {"file_path": str(path)})
        path.write_text("another a\nanother a\n")
        result = await tools.call("Edit", {"file_path": str(path), "old_string": "a here", "new_string": "b"})

    assert result.is_error and result.error_code in ("E_STALE", "E_NO_MATCH"), result.text
    assert path.read_text() == "another a\nanother a\n"


async def test_fs_36_of_fifty_edits_at_a_time_none_is_lost(field: Field) -> None:
    """R-FILE-8"""
    path = field.root / "f"
    path.write_text("".join(f"M{number};\n" for number in range(50)))
    results: list[ToolResult] = []

    async def edit(number: int) -> None:
        arguments = {"file_path": str(path), "old_string": f"M{number};", "new_string": f"D{number};"}
        results.append(await field.call("Edit", **arguments))

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(edit, number)

    assert [result.text for result in results if result.is_error] == []
    assert path.read_text() == "".join(f"D{number};\n" for number in range(50))


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640])
async def test_fs_41_a_mode_is_kept(field: Field, mode: int) -> None:
    """R-FILE-7"""
    path = field.root / "run.sh"
    path.write_text("old")
    path.chmod(mode)

    await field.call("Write", file_path=str(path), content="x")

    assert (path.read_text(), path.stat().st_mode & 0o777) == ("x", mode)


async def test_fs_42_hostile_bytes_are_shown_and_not_performed(field: Field) -> None:
    """R-FILE-11. A file with a NUL is binary and named so; without one its text is made visible."""
    hostile = "\x1b[2Jred\u202erev\u200bjoin\U000e0041tag\x07".encode() + b"\xff\xfe\n"
    (field.root / "bin").write_bytes(b"\0" + hostile)
    (field.root / "text").write_bytes(hostile)

    shown = [await field.call("Read", file_path=field.path(name)) for name in ("bin", "text")]

    for result in shown:
        text = json.dumps(result.wire(), ensure_ascii=False)
        text.encode()
        assert not any(character in text for character in "\x1b\u202e\u200b\U000e0041\x07")


PROTECTED = [
    ".git/hooks/pre-commit",
    ".git/config",
    ".goat/settings.json",
    "goat-mcp.yaml",
    ".mcp.json",
    ".vscode/tasks.json",
    ".claude/settings.json",
    "sub/.bashrc",
    ".GIT/Hooks/pre-commit",
]


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions", "dontAsk"])
@pytest.mark.parametrize("is_there", [False, True], ids=["absent", "there"])
async def test_what_others_obey_is_never_changed_unasked(tmp_path: Path, mode: str, is_there: bool) -> None:
    """R-FILE-9, in every mode, with nobody to ask."""
    root = tmp_path / "ws"
    root.mkdir()
    if is_there:
        for name in PROTECTED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("old")
    before = {path: path.read_text() for path in root.rglob("*") if path.is_file()}
    settings = {"workspace": [str(root)], "mode": mode, "files": {"read_before_write": "off"}}

    async with open_tools(settings, state_directory=tmp_path / "state") as tools:
        results = [await tools.call("Write", {"file_path": f"{root}/{name}", "content": "x"}) for name in PROTECTED]

    assert [result.error_code for result in results] == ["E_PERMISSION"] * len(PROTECTED)
    assert {path: path.read_text() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("asked", ["alias", "hooks/pre-commit"])
async def test_what_others_obey_is_not_changed_through_another_name(tmp_path: Path, asked: str) -> None:
    """R-FILE-9, R-FILE-5: the name that is asked for is harmless, the file it leads to is not."""
    root = tmp_path / "ws"
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("old")
    (root / "alias").symlink_to(".git/config")
    (root / "hooks").symlink_to(".git/hooks")
    settings = {"workspace": [str(root)], "mode": "acceptEdits", "files": {"read_before_write": "off"}}

    async with open_tools(settings, state_directory=tmp_path / "state") as tools:
        result = await tools.call("Write", {"file_path": f"{root}/{asked}", "content": "x"})

    assert result.error_code == "E_PERMISSION", result.text
    assert (root / ".git" / "config").read_text() == "old"
    assert list((root / ".git" / "hooks").iterdir()) == []


async def test_fs_48_a_file_is_no_resource(field: Field) -> None:
    result = await field.call("ReadMcpResource", server="goat", uri="file:///etc/passwd")

    assert result.is_error
    assert "root:" not in result.text


def make_special(path: Path, kind: str) -> None:
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
            except PermissionError:
                pytest.skip("making a device needs root")
        case _:
            with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(path.parent):
                listener.bind(path.name)


def peak_memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
