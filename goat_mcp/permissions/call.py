"""One call as rules see it: canonical, and the same object that will run (R-PERM-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from goat_mcp.core.spec import ToolSpec

if TYPE_CHECKING:  # the parser behind it is loaded with the first command that a rule looks into
    from goat_mcp.shell.script import ShellScript


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
        """The command of a Bash call, taken apart."""
        from goat_mcp.shell.script import read_script

        return read_script(str(self.arguments.get("command", "")))

    @cached_property
    def scripts(self) -> tuple[ShellScript, ...]:
        """All the shell text that would run, taken apart, for rules that deny or ask."""
        own = (self.script,) if self.spec.rule_name == "Bash" else ()
        if not self.runs:
            return own
        from goat_mcp.shell.script import read_script

        return (*own, *map(read_script, self.runs))
