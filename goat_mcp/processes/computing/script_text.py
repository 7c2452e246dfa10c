"""What a script is run with: functions for its tools, and its last value as text.

Both are made inside the sandbox, from JSON: so a value that is too large meets the limits of memory there, and never
reaches the server.
"""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

MAX_VALUE_CHARS = 4 * 1024 * 1024
"""Of the arguments of one call, and of the last value."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HELPERS = """\
import json as {json}
def {show}(value):
    if value is None or isinstance(value, str):
        text = value
    else:
        try:
            text = {json}.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            text = repr(value)
    if text is not None and len(text) > {limit}:
        raise RuntimeError(f'E_TOO_LARGE: the last value has {{len(text)}} characters, of {limit} at most')
    return text
async def {invoke}(name, args, kwargs):
    if args:
        raise RuntimeError('E_INPUT: tools take named arguments only: await tool(name=value)')
    try:
        text = {json}.dumps(kwargs, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise RuntimeError(f'E_INPUT: arguments are JSON data: {{problem}}')
    if len(text) > {limit}:
        raise RuntimeError(f'E_TOO_LARGE: arguments of {{len(text)}} characters, of {limit} at most')
    return await {call}(name, text)
"""
_FUNCTION = """\
async def {name}(*args, **kwargs):
    return await {invoke}('{name}', args, kwargs)
"""


@dataclass(frozen=True)
class ScriptText:
    """`helpers` are run first, then `script`, whose last value is its text. `call` is what the helpers call: with the
    name of a function and its arguments as JSON. `has_value`: whether the last value can be had."""

    helpers: str
    script: str
    call: str
    has_value: bool


def script_text(script: str, functions: Iterable[str]) -> ScriptText:
    """`functions` are the names of tools; those that the script does not name are left out."""
    # A script that knew these names could send the server what it likes.
    names = {part: f"_{part}_{secrets.token_hex(8)}" for part in ("json", "show", "invoke", "call")}
    words = set(_WORD.findall(script))
    used = [_FUNCTION.format(name=name, invoke=names["invoke"]) for name in functions if name in words]
    shown = _with_last_value(script, names["show"])
    helpers = _HELPERS.format(**names, limit=MAX_VALUE_CHARS) + "".join(used)
    return ScriptText(helpers, f"{script}\nNone" if shown is None else shown, names["call"], shown is not None)


def _with_last_value(script: str, show: str) -> str | None:
    """The script with its last expression inside a call of `show`, on the same lines. None if Python cannot read it:
    the sandbox may know syntax that this Python does not."""
    try:
        tree = ast.parse(script)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not tree.body or not isinstance(last := tree.body[-1], ast.Expr):
        return script
    value = last.value
    assert value.end_lineno is not None and value.end_col_offset is not None, "of everything that was parsed"
    # Offsets are in bytes of UTF-8, in lines as Python counts them.
    lines = [line.encode() for line in script.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    end, start = value.end_lineno - 1, value.lineno - 1
    lines[end] = lines[end][: value.end_col_offset] + b"))" + lines[end][value.end_col_offset :]
    lines[start] = lines[start][: value.col_offset] + show.encode() + b"((" + lines[start][value.col_offset :]
    return b"\n".join(lines).decode()
