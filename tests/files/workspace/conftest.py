"""A workspace beside a folder it must never reach, opened both ways the kernel may offer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

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


@pytest.fixture(params=[pytest.param("openat2", marks=pytest.mark.linux_only("a call of Linux")), "name by name"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    if request.param == "name by name":
        return Kernel(without_openat2=True)
    kernel = Kernel()
    if not kernel.has_openat2:
        pytest.skip("this kernel has no openat2")
    return kernel


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
