"""Which system runs is asked in one place. Everything else asks for a feature of it: `goat_mcp.core.platform`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASKS = {"goat_mcp/core/platform.py", "goat_mcp/core/posix.py", "goat_mcp/state/file_lock.py"}
IMPLEMENTS = ("linux_", "macos_", "windows_")
"""How the names of files begin that are about one system."""

NAMES = {
    "sys.platform",
    "sys.getwindowsversion",
    "os.name",
    "os.uname",
    "platform.system",
    "platform.platform",
    "platform.uname",
    "platform.machine",
    "platform.release",
    "platform.version",
    "platform.win32_ver",
    "platform.mac_ver",
}
MODULES = {"os", "signal", "socket", "select"}
"""Modules that have on one system what they lack on another. Nobody asks them with `hasattr`."""


def asked(tree: ast.AST) -> Iterator[str]:
    """Each question about the system, by whatever name its module was imported, and by whatever way."""
    known = {name.partition(".")[0] for name in NAMES} | MODULES
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (name for alias in node.names if (name := f"{node.module}.{alias.name}") in NAMES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{modules.get(node.value.id)}.{node.attr}"
            if name in NAMES:
                yield name
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            first = node.args[0]
            module = modules.get(first.id) if isinstance(first, ast.Name) else None
            if node.func.id == "hasattr" and module in MODULES:
                yield f"hasattr({module}, ...)"
            elif node.func.id == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                name = f"{module}.{node.args[1].value}"
                if name in NAMES:
                    yield name


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import sys\nif sys.platform == 'linux': pass", ["sys.platform"]),
        ("import sys as system\nsystem.platform.startswith('win')", ["sys.platform"]),
        ("def f():\n    import sys\n    return sys.platform", ["sys.platform"]),
        ("from sys import platform", ["sys.platform"]),
        ("import os\nos.name == 'nt'", ["os.name"]),
        ("import os\nos.uname().machine", ["os.uname"]),
        ("import platform\nplatform.system()", ["platform.system"]),
        ("from platform import platform as p", ["platform.platform"]),
        ("import sys\nsys.getwindowsversion()", ["sys.getwindowsversion"]),
        ("import sys\ngetattr(sys, 'platform')", ["sys.platform"]),
        ("import signal\nhasattr(signal, 'SIGKILL')", ["hasattr(signal, ...)"]),
        ("import socket as s\nhasattr(s, 'AF_UNIX')", ["hasattr(socket, ...)"]),
        ("import platform\nplatform.python_version()", []),
        ("from goat_mcp.core import platform\nplatform.SYSTEM\nplatform.HAS_PROC", []),
        ("import os\nentry.name\nos.open\nhasattr(entry, 'name')", []),
    ],
)
def test_a_question_about_the_system_is_seen_however_it_is_written(code: str, found: list[str]) -> None:
    assert list(asked(ast.parse(code))) == found


def test_only_the_platform_module_and_implementations_ask_which_system_runs() -> None:
    files = [path for folder in ("goat_mcp", "manifests") for path in sorted((ROOT / folder).rglob("*.py"))]
    others = {path.relative_to(ROOT).as_posix(): path for path in files if not path.name.startswith(IMPLEMENTS)}

    found = {
        name: questions
        for name in others.keys() - ASKS
        if (questions := set(asked(ast.parse(others[name].read_text()))))
    }

    assert others.keys() >= ASKS
    assert found == {}, "ask goat_mcp.core.platform for the feature; add it there if need be"
