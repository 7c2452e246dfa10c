"""The `goat-mcp` program: which command runs, and what becomes of what goes wrong."""

from __future__ import annotations

import gc
import sys
from typing import Any, cast

USAGE_ERROR = 1


def main() -> None:
    """Run the command line and exit: 0 ok, 1 usage or configuration, 3 auth, 4 unreachable, 5 tool error."""
    # Importing the SDK builds thousands of models; collecting garbage meanwhile takes a fifth of that time.
    gc.disable()
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    if not arguments and not sys.stdin.isatty():
        arguments = ["serve"]
    import typer

    from goat_mcp.cli.app import build_app
    from goat_mcp.core.errors import ToolError

    # Typer may carry a Click of its own; its errors are found through a class that it does export.
    click_error = cast(
        "type[Exception]", next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    )
    command = typer.main.get_command(build_app(arguments))
    try:
        code: Any = command.main(args=arguments, prog_name="goat-mcp", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click_error as wrong:
        message: str = getattr(wrong, "format_message", lambda: "wrong usage")()
        if not arguments:
            print(message, file=sys.stderr)  # noqa: T201  # the help: a person at a terminal asked for nothing yet
            return USAGE_ERROR
        return _fail(message, "See goat-mcp --help.", arguments, USAGE_ERROR)
    except typer.Abort:
        return 130
    except ToolError as error:
        return _fail(error.message, error.suggestion, arguments, USAGE_ERROR, code=str(error.code))
    except (KeyboardInterrupt, BrokenPipeError):
        return 130


def _fail(message: str, suggestion: str, arguments: list[str], status: int, *, code: str = "E_USAGE") -> int:
    """Say what is wrong on stderr: in words, or with `--json` as one JSON line."""
    text = "\n".join(part for part in (f"goat-mcp: {message}", suggestion) if part)
    if "--json" in arguments:
        import json

        text = json.dumps({"error": {"code": code, "message": message, "suggestion": suggestion}})
    print(text, file=sys.stderr)  # noqa: T201  # the manners of a command line
    return status
