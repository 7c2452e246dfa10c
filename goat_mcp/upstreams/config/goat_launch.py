"""Whether an entry starts goat-mcp itself: Claude Desktop's own file does, as `--upstreams`.

It needs no other module of upstreams, so that commands that only look at files stay quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from goat_mcp.state.directory import own_upstreams_file

_PROGRAM = "goat-mcp"
_MODULE = "goat_mcp"
_FLAG = "--upstreams"
UPSTREAMS_VARIABLE = "GOAT_MCP_UPSTREAMS"


def launches_us(command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None, file: Path) -> bool:
    """Whether the command runs goat-mcp with `file` among its upstream files: named ones, else the user's own."""
    if not is_goat(command, args):
        return False
    named = [*upstream_files_of(args), *([env[UPSTREAMS_VARIABLE]] if UPSTREAMS_VARIABLE in env else [])]
    here = file.resolve()
    if not named and not any(arg.partition("=")[0] == "--config" for arg in args):
        return here == own_upstreams_file().resolve()
    return any(here == Path(cwd or Path.cwd(), Path(name).expanduser()).resolve() for name in named)


def is_goat(command: str, args: Sequence[str]) -> bool:
    """Whether the command starts goat-mcp, with whatever upstreams."""
    if PurePath(command.replace("\\", "/")).name.removesuffix(".exe") == _PROGRAM:
        return True
    for before, arg, behind in zip(("", *args), args, (*args[1:], ""), strict=False):
        if before == "-m" and arg == _MODULE:
            return True
        name = arg.split("@")[0].split("==")[0].split("[")[0].replace("\\", "/")
        # `uvx goat-mcp`, `uv run goat-mcp`, `sh -c`-free launchers that take the program as an argument. A path may as
        # well be a folder that some server works in.
        is_program = "/" not in name or behind == "serve" or _is_file(arg)
        if is_program and PurePath(name).name.removesuffix(".exe") == _PROGRAM:
            return True
    return False


def _is_file(arg: str) -> bool:
    try:
        return Path(arg).is_file()
    except OSError:
        # A script of its own, as `-c` takes it, is longer than a name may be.
        return False


def upstream_files_of(args: Sequence[str]) -> Iterator[str]:
    """What the flag `--upstreams` names."""
    for index, arg in enumerate(args):
        if arg == _FLAG and index + 1 < len(args):
            yield args[index + 1]
        elif arg.startswith(_FLAG + "="):
            yield arg.removeprefix(_FLAG + "=")
