"""What of a call is a command, as rules about commands understand it. Which rules there are is not known here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.manifests.script_file import script_file
from goat_mcp.manifests.tool_document import AccessFields


class ShellAccess(NamedTuple):
    """What `Access` calls so."""

    seen: Mapping[str, Any] | None = None
    runs: tuple[str, ...] = ()
    script_sha256: str = ""


def shell_access(
    fields: AccessFields, input: Mapping[str, Any], workspace: Workspace, *, is_judged_as_bash: bool
) -> ShellAccess:
    """Raises `ToolError` where a script cannot be opened."""
    sha256 = ""
    if fields.another_machine:
        return ShellAccess(runs=tuple(_words(input, fields.another_machine)))
    if fields.argv:
        command, inside, folded = shlex.join(_words(input, fields.argv)), (), (*fields.argv, *fields.stdin)
        if given := "".join(_words(input, fields.stdin)):
            command += f" <<< {shlex.quote(given)}"  # what a shell is given there are commands, too
    elif fields.script:
        asked, *arguments = _words(input, fields.script)
        script = script_file(workspace, asked)
        command, folded = shlex.join(script.argv(tuple(arguments))), fields.script
        inside, sha256 = (script.text,) if script.text else (), script.sha256
    else:
        return ShellAccess()
    if not is_judged_as_bash:
        return ShellAccess(runs=(command, *inside), script_sha256=sha256)
    rest = {name: value for name, value in input.items() if name not in folded}
    return ShellAccess({"command": command, **rest}, inside, sha256)


def _words(input: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    words: list[str] = []
    for name in names:
        value: Any = input.get(name, ())
        words += [value] if isinstance(value, str) else [str(one) for one in cast("Sequence[Any]", value)]
    if any("\0" in word for word in words):
        raise ToolError(ErrorCode.INPUT, f"{', '.join(names)}: holds a NUL character", "Remove it.")
    return words
