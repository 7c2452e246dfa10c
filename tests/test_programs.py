"""A fresh machine has what the tests call: nothing that somebody installed by hand is needed.

This reads the programs that tests name literally: the first word of an argument list, `shutil.which`, and the scripts
that they hand to a tool as `command`. CI runs with a fresh machine's PATH and finds the others.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.files.search.ripgrep import find_ripgrep
from tests.programs import ENVIRONMENT, PROGRAMS, SYSTEM

TESTS = Path(__file__).parent
STARTS = {"run", "Popen", "check_output", "check_call", "run_process", "open_process", "run_program"}


def literal(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def named_by(call: ast.Call) -> Iterator[str]:
    """The programs that one call names literally."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0] if call.args else None
    if function == "which":
        yield literal(first)
    if function in STARTS and isinstance(first, ast.List | ast.Tuple) and first.elts:
        yield literal(first.elts[0])
    texts = [literal(keyword.value) for keyword in call.keywords if keyword.arg == "command"]
    if function == "call" and first is not None and literal(first) == "Bash":
        for text in texts:
            yield from (words[0] for words in read_script(text).all_commands)


def named_programs() -> dict[str, str]:
    """Each program, with one file of tests that names it."""
    found: dict[str, str] = {}
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" in path.parts or ".venv" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                found |= {name: str(path.relative_to(TESTS)) for name in named_by(node) if name and "/bin/" not in name}
    return found


def test_the_table_says_what_brings_each_program_that_tests_call() -> None:
    named = named_programs()

    assert {name: file for name, file in named.items() if name not in PROGRAMS} == {}
    assert {"git", "bwrap", "rg", "node"} <= named.keys()


@pytest.mark.parametrize("name", [name for name, source in PROGRAMS.items() if source == SYSTEM])
def test_a_program_of_the_system_is_there(name: str) -> None:
    assert shutil.which(name) is not None, f"tests call {name}: install it"


@pytest.mark.usefixtures("ripgrep_on_path")
def test_a_program_of_the_environment_is_beside_this_python() -> None:
    found = [shutil.which(name) for name, source in PROGRAMS.items() if source == ENVIRONMENT]

    assert [Path(program or "").resolve() for program in found] == [Path(find_ripgrep() or "").resolve()]
