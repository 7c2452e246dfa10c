"""A workspace beside a folder it must never reach, opened both ways the kernel may offer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.files.workspace.beneath import Kernel

CANARY = "CANARY-7f3a"


@dataclass(frozen=True)
class Ground:
    """`top` is the workspace's only root; `out` lies beside it and holds the canary."""

    top: Path
    out: Path
    locks: Path
    kernel: Kernel
    workspace: Workspace

    def read(self, asked: str | Path) -> bytes:
        with self.workspace.open_file(self.workspace.resolve(str(asked))) as file:
            return file.read()

    def refused_read(self, asked: str | Path) -> ToolError:
        with pytest.raises(ToolError) as refused:
            self.read(asked)
        assert CANARY not in repr((refused.value.message, refused.value.suggestion, refused.value.facts))
        return refused.value

    def leftovers(self) -> list[str]:
        return [name for _, _, names in os.walk(self.top) for name in names if name.startswith(".goat-mcp-")]


@pytest.fixture(
    params=[
        pytest.param("openat2", marks=pytest.mark.linux_only("a call of Linux")),
        "name by name",
        "as macOS has it",
    ]
)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    if request.param == "as macOS has it":
        open_as_on_macos(monkeypatch)
    if request.param != "openat2":
        return Kernel(without_openat2=True)
    kernel = Kernel()
    if not kernel.has_openat2:
        pytest.skip("this kernel has no openat2")
    return kernel


def open_as_on_macos(patch: pytest.MonkeyPatch) -> None:
    """No openat2 (hand that in), no O_PATH, no /proc; a call says where an open file is. Nothing to do on a Mac."""
    if not platform.HAS_PROC:
        return

    def where_it_is(fd: int, command: int, argument: bytes) -> bytes:
        assert (command, len(argument)) == (50, 1024)
        return os.readlink(f"/proc/self/fd/{fd}").encode().ljust(1024, b"\0")  # noqa: PTH115  # as the kernel has it

    patch.setattr(posix, "O_PATH", 0)
    patch.setattr(posix, "F_GETPATH", 50)
    patch.setattr(posix, "fcntl", where_it_is)
    patch.setattr(platform, "HAS_PROC", False)
    patch.setattr(platform, "HAS_GETPATH", True)


@pytest.fixture
def ground(tmp_path: Path, kernel: Kernel) -> Iterator[Ground]:
    top, out, locks = tmp_path / "ws", tmp_path / "out", tmp_path / "locks"
    top.mkdir()
    out.mkdir()
    (out / "secret.txt").write_text(CANARY)
    before = _contents(out)
    yield Ground(top, out, locks, kernel, Workspace(top, lock_folder=locks, kernel=kernel))
    assert _contents(out) == before, "something outside the workspace has changed"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}
