"""The bundle for desktop hosts: what it holds starts, as its manifest says, and is the same whenever it is made."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from scripts.bundle import make
from tests.e2e.conftest import fill
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire

pytestmark = pytest.mark.e2e


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Unpacked, as a host has it."""
    folder = tmp_path / "bundle"
    with zipfile.ZipFile(make(tmp_path / "dist")) as archive:
        archive.extractall(folder)
    return folder


def filled_in(text: str, bundle: Path, workspace: Path) -> str:
    """As a host does where nobody has named a file of upstreams."""
    values = {"__dirname": str(bundle), "user_config.workspace": str(workspace), "user_config.upstreams": ""}
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    assert "${" not in text
    return text


def test_the_server_starts_from_what_the_bundle_holds_with_the_command_of_its_manifest(
    bundle: Path, tmp_path: Path
) -> None:
    """With the dependencies that are here: fetching them is the work of uv, which runs the rest of the command."""
    manifest: dict[str, Any] = json.loads((bundle / "manifest.json").read_text())
    config = manifest["server"]["mcp_config"]
    launch = Launch(tmp_path, fill(tmp_path / "workspace"))
    words = [filled_in(word, bundle, launch.workspace) for word in config["args"]]
    by_uv, (program, *arguments) = words[:4], words[4:]
    own = {name: filled_in(value, bundle, launch.workspace) for name, value in config["env"].items()}
    environment = {**launch.environment, **own, "PYTHONPATH": str(bundle)}
    # The script of this name does the same with the package that it finds.
    noted = tmp_path / "from"
    script = (
        f"import goat_mcp; open({str(noted)!r}, 'w').write(goat_mcp.__file__)\nimport goat_mcp.__main__ as m; m.main()"
    )
    command = [sys.executable, "-c", script]

    with Wire([*command, *arguments], environment, Path(os.sep), tmp_path / "stderr") as wire:
        wire.handshake()
        names = [tool["name"] for tool in wire.request("tools/list")["result"]["tools"]]
        read = wire.text("Read", {"file_path": str(launch.workspace / "notes.md")})

    assert (config["command"], by_uv, program) == ("uv", ["run", "--directory", str(bundle), "--no-dev"], "goat-mcp")
    assert noted.read_text() == str(bundle / "goat_mcp" / "__init__.py")
    assert sorted(names) == sorted(tool["name"] for tool in manifest["tools"])
    assert "The goat eats at noon." in read


def test_it_holds_what_the_package_is_built_from_and_nothing_of_a_checkout(bundle: Path) -> None:
    names = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}

    assert {"manifest.json", "pyproject.toml", "README.md", "LICENSE", "goat_mcp/__main__.py"} <= names
    assert {"manifests/builtin/Read.yaml", "manifests/bash/bash.py", "examples/weather_stdio.py"} <= names
    assert {name.split("/")[0] for name in names} == {
        *("manifest.json", "pyproject.toml", "README.md", "LICENSE", "goat_mcp", "manifests", "examples"),
    }
    assert [name for name in names if "__pycache__" in name or "/." in name or name.startswith(".")] == []


def test_the_same_source_makes_the_same_bytes(tmp_path: Path) -> None:
    first, second = make(tmp_path / "one"), make(tmp_path / "two")

    assert first.read_bytes() == second.read_bytes()
