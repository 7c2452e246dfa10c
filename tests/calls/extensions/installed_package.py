"""A package as an installer leaves it, without an installer: modules in a folder, and a dist-info beside them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import invalidate_caches
from pathlib import Path

import pytest

GROUP = "goat_mcp.extensions"
"""Packages of others name it: it never changes."""


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry_points: Mapping[str, str],
    modules: Mapping[str, str],
    package: str = "my-extensions",
) -> None:
    """Put the modules and their entry points where Python looks for packages, until the test ends."""
    site = folder / f"site-{package}"
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
    for name, source in modules.items():
        path = site / Path(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        # Another test's module of this name must not stand in for it, here and afterwards.
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]  # what setitem is to take back
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    invalidate_caches()
