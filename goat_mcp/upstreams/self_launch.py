"""Would an entry start this same goat-mcp again? Claude Desktop's own file as `--upstreams` has such an entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

_PROGRAM = "goat-mcp"
_MODULE = "goat_mcp"
_FLAG = "--upstreams"
_VARIABLE = "GOAT_MCP_UPSTREAMS"


def launches_us(command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None, file: Path) -> bool:
    """Whether the command runs goat-mcp with `file` among its upstream files."""
    if not _is_goat(command, args):
        return False
    named = [*_files_of(args), *([env[_VARIABLE]] if _VARIABLE in env else [])]
    here = file.resolve()
    return any(here == Path(cwd or Path.cwd(), Path(name).expanduser()).resolve() for name in named)


def _is_goat(command: str, args: Sequence[str]) -> bool:
    if PurePath(command.replace("\\", "/")).name.removesuffix(".exe") == _PROGRAM:
        return True
    for before, arg in zip(("", *args), args, strict=False):
        if before == "-m" and arg == _MODULE:
            return True
        name = arg.split("@")[0].split("==")[0].split("[")[0]
        # `uvx goat-mcp`, `uv run goat-mcp`, `sh -c`-free launchers that take the program as an argument.
        if PurePath(name.replace("\\", "/")).name.removesuffix(".exe") == _PROGRAM:
            return True
    return False


def _files_of(args: Sequence[str]) -> Iterator[str]:
    for index, arg in enumerate(args):
        if arg == _FLAG and index + 1 < len(args):
            yield args[index + 1]
        elif arg.startswith(_FLAG + "="):
            yield arg.removeprefix(_FLAG + "=")
