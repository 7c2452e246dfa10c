"""The command that starts one of our small programs, which prepare a process from within and then become the program.

Each is a function of a module in this package that takes its arguments. It runs in a Python that has loaded nothing
else, and every sandboxed program waits for it: it imports only what costs next to nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
# The package without what it loads at import: launchers need few modules of ours, which need no others.
_START = """
import sys
for name in ("goat_mcp", "goat_mcp.commands", "goat_mcp.commands.sandbox", "goat_mcp.processes"):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = ["/".join([sys.argv[1], *name.split(".")[1:]])]
from goat_mcp.commands.sandbox.{module} import {function}
{function}(sys.argv[2:])
"""
_OPTIONS = ("-I", "-S", "-X", "frozen_modules=on")


def launcher_command(module: str, function: str) -> tuple[str, ...]:
    """The words before a launcher's own arguments. The interpreter has its real path, for other roots."""
    start = _START.format(module=module, function=function)
    return (os.path.realpath(sys.executable), *_OPTIONS, "-c", start, str(_PACKAGE))


def launcher_needs() -> tuple[Path, ...]:
    """What a launcher must be able to read beside /usr: the interpreter with its library, and two packages of ours."""
    python = Path(os.path.realpath(sys.executable))
    library = Path(os.path.realpath(sys.base_prefix))
    needs = [library, _PACKAGE / "commands" / "sandbox", _PACKAGE / "processes"]
    if not python.is_relative_to(library):
        needs.append(python)
    return tuple(path for path in needs if not path.is_relative_to("/usr"))
