"""The command that `install` writes lasts longer than the environment that `install` happens to run in."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.cli.hosts.own_program import own_program
from goat_mcp.core import platform
from goat_mcp.core.errors import ToolError

WHEEL = "/home/ada/my downloads/goat_mcp-0.1.0-py3-none-any.whl"
ORIGINS: dict[str, dict[str, Any]] = {
    WHEEL: {"url": "file:///home/ada/my%20downloads/goat_mcp-0.1.0-py3-none-any.whl", "archive_info": {}},
    "/home/ada/goat-mcp": {"url": "file:///home/ada/goat-mcp", "dir_info": {}},
    "git+https://example.com/goat-mcp@4f2a": {
        "url": "https://example.com/goat-mcp",
        "vcs_info": {"vcs": "git", "commit_id": "4f2a"},
    },
}
OF_UVX = "/home/ada/.cache/uv/archive-v0/dKRx2rpsLEVQ2aYx"
OF_PIPX_RUN = [
    "/home/ada/.cache/pipx/b203cf02f1f566e",
    "/home/ada/.local/share/pipx/.cache/b203cf02f1f566e",
    "/Users/ada/Library/Caches/pipx/b203cf02f1f566e",
    "C:/Users/ada/AppData/Local/pipx/pipx/Cache/b203cf02f1f566e",
]


@pytest.fixture
def uvx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Beside uv, which says where it is, and not in the PATH."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("UV", str(tmp_path / "uv"))
    program = tmp_path / "uvx"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program)


def runs_in(prefix: str, origin: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    text = None if origin is None else json.dumps(origin)

    def installed(_: str) -> Installed:
        return Installed(text)

    monkeypatch.setattr(Distribution, "from_name", installed)


class Installed:
    def __init__(self, origin: str | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.origin


@pytest.mark.parametrize("source", ORIGINS)
def test_from_uvx_the_entry_names_what_uvx_was_given(uvx: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_in(OF_UVX, ORIGINS[source], monkeypatch)

    assert own_program() == (uvx, ["--from", source, "goat-mcp"])


def test_the_package_of_an_index_needs_no_source(uvx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_in("/home/ada/.cache/uv/builds-v0/.tmpoEKkg5", None, monkeypatch)

    assert own_program() == (uvx, ["goat-mcp"])


@pytest.mark.parametrize("prefix", [OF_UVX, *OF_PIPX_RUN])
def test_what_cannot_be_started_later_is_refused_with_the_next_step(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UV", raising=False)
    runs_in(prefix, ORIGINS[WHEEL], monkeypatch)

    with pytest.raises(ToolError, match="is cleaned up") as refused:
        own_program()

    assert refused.value.suggestion == f"Nothing was written. Install it first: pipx install '{WHEEL}'"


def test_on_windows_a_file_is_named_as_windows_names_it(uvx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "windows")
    runs_in(OF_UVX, {"url": "file:///C:/Users/ada/my%20downloads/goat_mcp-0.1.0-py3-none-any.whl"}, monkeypatch)

    assert own_program()[1][1] == r"C:\Users\ada\my downloads\goat_mcp-0.1.0-py3-none-any.whl"


def test_on_windows_the_program_has_its_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "windows")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "Scripts" / "python.exe"))
    program = tmp_path / "Scripts" / "goat-mcp.exe"
    program.parent.mkdir()
    found = [own_program()]
    program.touch()
    found.append(own_program())

    assert found == [(sys.executable, ["-m", "goat_mcp"]), (str(program), [])]


@pytest.mark.parametrize("linked", ["bin/goat-mcp", "opt/goat-mcp/bin/goat-mcp"])
def test_homebrews_link_outlasts_its_version(linked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cellar = tmp_path / "Cellar" / "goat-mcp" / "0.2.0" / "libexec"
    for file in (cellar / "bin" / "goat-mcp", tmp_path / linked):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.setattr(sys, "prefix", str(cellar))
    monkeypatch.setattr(sys, "executable", str(cellar / "bin" / "python"))

    assert own_program() == (str(tmp_path / linked), [])


@pytest.mark.parametrize("folder", [".local/share/uv/tools/goat-mcp", ".local/pipx/venvs/goat-mcp", ".cache/goat-mcp"])
def test_what_uv_and_pipx_install_is_named_by_its_whole_path(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that was started from the Finder has no PATH of a shell."""
    program = tmp_path / folder / "bin" / "goat-mcp"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / folder))
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))

    assert own_program() == (str(program), [])


def test_what_pipx_has_installed_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_in("/home/ada/.local/share/pipx/venvs/goat-mcp", ORIGINS[WHEEL], monkeypatch)

    assert own_program() == (os.fspath(Path(sys.executable).with_name("goat-mcp")), [])
