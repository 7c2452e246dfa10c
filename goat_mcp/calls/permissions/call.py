"""One call as rules see it: canonical, and the same object that will run (R-PERM-2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.core.spec import ToolSpec

if TYPE_CHECKING:  # the parser behind it is loaded with the first command that a rule looks into
    from goat_mcp.commands.shell.script_parsing import ShellScript

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Call:
    """Paths are absolute. `asked` are those the call names, before links are followed; `reads` and `writes` the real
    ones. `roots` are the workspace's directories, which relative patterns speak of. `directory` is where a command
    would begin. `runs` is shell text that it runs beside its `command` (see `Access`)."""

    spec: ToolSpec
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    directory: str = ""
    runs: tuple[str, ...] = ()

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every path it names and every file it touches: a deny rule may mean any of them (R-FILE-5)."""
        return tuple(dict.fromkeys((*self.asked, *self.reads, *self.writes)))

    @cached_property
    def script(self) -> ShellScript:
        """The command of a Bash call, taken apart: for rules that allow, which mean no call with variables of its
        own."""
        from goat_mcp.commands.shell.script_parsing import read_script

        return read_script(self._command)

    @cached_property
    def scripts(self) -> tuple[ShellScript, ...]:
        """All the shell text that would run, taken apart, for rules that deny or ask. Variables of the call's own
        count as exported by it (R-SHELL-5b)."""
        own = (self._command,) if self.spec.rule_name == "Bash" else ()
        if not self.exports and not self.runs:
            return (self.script,) if own else ()
        from goat_mcp.commands.shell.script_parsing import read_script

        return tuple(read_script(self.exports + text) for text in (*own, *self.runs))

    @cached_property
    def exports(self) -> str:
        """The line that sets the variables of the argument `env`; empty if there are none."""
        variables: Any = self.arguments.get("env")
        if not isinstance(variables, Mapping) or not variables:
            return ""
        import shlex

        pairs = cast("Mapping[str, Any]", variables).items()
        # What is no variable's name is refused before anything runs.
        named = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in pairs if _NAME.fullmatch(name))
        return f"export {named}\n" if named else ""

    @property
    def _command(self) -> str:
        return str(self.arguments.get("command", ""))
