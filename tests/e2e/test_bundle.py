"""The bundle for desktop hosts: what it holds starts, as its manifest says, and is the same whenever it is made."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from scripts.bundle import make
from scripts.packaging_files import BUNDLE_FILE
from tests.e2e.conftest import fill
from tests.e2e.goat import Launch
from tests.e2e.node_side import MODULES, find_node
from tests.e2e.wire import Wire
from tests.packaging.installing import installing_environment

pytestmark = pytest.mark.e2e

MCPB = MODULES / "@anthropic-ai" / "mcpb" / "dist" / "cli" / "cli.js"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Unpacked, as a host has it."""
    folder = tmp_path / "bundle"
    with zipfile.ZipFile(make(tmp_path / "dist")) as archive:
        archive.extractall(folder)
    return folder


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def filled_in(text: str, bundle: Path, workspace: Path) -> str:
    """As a host does where nobody has named a file of upstreams."""
    values = {"__dirname": str(bundle), "user_config.workspace": str(workspace), "user_config.upstreams": ""}
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    assert "${" not in text
    return text


def test_the_server_starts_with_the_command_of_the_manifest(bundle: Path, tmp_path: Path) -> None:
    """uv installs what it needs into the unpacked bundle, as it does for a host that starts it."""
    manifest: dict[str, Any] = json.loads((bundle / "manifest.json").read_text())
    config = manifest["server"]["mcp_config"]
    launch = Launch(tmp_path, fill(tmp_path / "workspace"))
    words = [filled_in(word, bundle, launch.workspace) for word in config["args"]]
    own = {name: filled_in(value, bundle, launch.workspace) for name, value in config["env"].items()}
    environment = {**launch.environment, **own, **installing_environment()}

    with Wire([find_uv_bin(), *words], environment, Path(os.sep), tmp_path / "stderr") as wire:
        wire.handshake()
        names = [tool["name"] for tool in wire.request("tools/list")["result"]["tools"]]
        read = wire.text("Read", {"file_path": str(launch.workspace / "notes.md")})

    assert config["command"] == "uv"
    assert sorted(names) == sorted(tool["name"] for tool in manifest["tools"])
    assert "The goat eats at noon." in read
    (installed,) = (bundle / ".venv").rglob("_editable_impl_goat_mcp.pth")
    assert installed.read_text() == str(bundle)


def test_it_holds_what_the_package_is_built_from_and_nothing_of_a_checkout(bundle: Path) -> None:
    names = files_in(bundle)

    assert {"manifest.json", "pyproject.toml", "README.md", "LICENSE", "goat_mcp/__main__.py"} <= names
    assert {"manifests/builtin/Read.yaml", "manifests/bash/bash.py", "examples/weather_stdio.py"} <= names
    assert {name.split("/")[0] for name in names} == {
        *(
            "manifest.json",
            "pyproject.toml",
            "README.md",
            "LICENSE",
            "goat_mcp",
            "goat_mcp_launch.py",
            "manifests",
            "examples",
        ),
    }
    assert [name for name in names if "__pycache__" in name or "/." in name or name.startswith(".")] == []


def test_the_program_of_the_format_takes_manifest_and_bundle(bundle: Path, tmp_path: Path) -> None:
    unpacked = tmp_path / "unpacked"

    assert "passes" in find_node().run_script(MCPB, "validate", str(BUNDLE_FILE))
    find_node().run_script(MCPB, "unpack", str(make(tmp_path / "other")), str(unpacked))

    assert files_in(unpacked) == files_in(bundle)


def test_the_program_of_the_format_refuses_another_manifest(tmp_path: Path) -> None:
    wrong = tmp_path / "manifest.json"
    wrong.write_text(BUNDLE_FILE.read_text().replace('"entry_point"', '"entrypoint"'))

    with pytest.raises(AssertionError, match="entry_point"):
        find_node().run_script(MCPB, "validate", str(wrong))


def test_the_same_source_makes_the_same_bytes(tmp_path: Path) -> None:
    first, second = make(tmp_path / "one"), make(tmp_path / "two")

    assert first.read_bytes() == second.read_bytes()
