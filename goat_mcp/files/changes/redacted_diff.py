"""A change of a settings or host file as people see it: a diff without secrets."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator

from goat_mcp.core import platform
from goat_mcp.core.redaction import Redactor, is_likely_secret
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.processes.wsl import wsl_paths
from goat_mcp.state.file_edit import Change

_MAX_LINE = 4000


def redacted_diff(change: Change) -> str:
    """A unified diff; every secret that either side holds is taken out, and nothing steers a terminal.

    What stands in an environment or among headers may be one under any name: no value of those is shown.
    """
    redactor = _redactor(change)
    before, after = (
        _without_values((data or b"").decode("utf-8", "replace")) for data in (change.before, change.after)
    )
    names = [str(change.path) if data is not None else "(no file)" for data in (change.before, change.after)]
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), names[0], names[1], lineterm="")
    return make_visible("\n".join(map(_shortened, redactor.text("\n".join(lines)).split("\n"))))


def _shortened(line: str) -> str:
    """Without the middle of a line that no person reads to its end: some hosts write all they keep on one."""
    left_out = len(line) - _MAX_LINE
    half = _MAX_LINE // 2
    return f"{line[:half]} ... {left_out} characters ... {line[-half:]}" if left_out > 0 else line


def _redactor(change: Change) -> Redactor:
    redactor = Redactor()
    distribution = wsl_paths().distribution if platform.IN_WSL else ""  # `Ubuntu-24.04` has the looks of a secret
    for data in (change.before, change.after):
        for name, value in _texts_in((data or b"").decode("utf-8", "replace")):
            if value != distribution and is_likely_secret(name, value) and "${" not in value:
                redactor.add(value)
    return redactor


def _without_values(text: str) -> str:
    """Without the values in maps of environment variables and headers, in JSON, TOML and YAML; references stay."""
    # Begins with a letter: so the search is fast in files of megabytes. What is before it in a name does not matter.
    named = r"""(?:headers|envs?|environment)["']?"""
    quoted = r""""(?:[^"\\\n]|\\.)*"|'[^'\n]*'"""
    name = rf"(?:{quoted}|[\w.-]+)"

    def hidden(match: re.Match[str]) -> str:
        begin, value = match[1], match[2]
        if "${" in value:
            return match[0]
        return begin + (f"{value[0]}[redacted]{value[0]}" if value[0] in "\"'" else "[redacted]")

    def in_braces(match: re.Match[str]) -> str:
        return match[1] + re.sub(rf"""({name}\s*[:=]\s*)({quoted}|[^\s"',]+)""", hidden, match[2])

    def in_lines(match: re.Match[str]) -> str:
        return match[1] + re.sub(rf"(?m)^(\s*{name}\s*[:=][ \t]*)({quoted}|\S[^\n]*)", hidden, match[2])

    # What a quotation mark in a comment seems to open ends with its line.
    text = re.sub(rf"({named}\s*[:=]\s*\{{)((?:{quoted}|[^{{}}])*)", in_braces, text)
    section = rf"(?m)(^[ \t]*\[[^\]\n]*?{named}\][^\n]*\n)((?:[ \t]*[^\[\s][^\n]*\n?|[ \t]*\n)*)"
    text = re.sub(section, in_lines, text)
    # YAML: what is indented further than the name.
    key = rf"""["']?(?:[\w-]*(?=headers))?{named}"""
    block = rf"(?m)(^([ \t]*)(?:- )?{key}:[ \t]*(?:#[^\n]*)?\n)((?:\2[ \t]+[^\n]*\n?|[ \t]*\n)+)"
    return re.sub(
        block, lambda found: found[1] + re.sub(rf"(?m)^(\s*{name}:[ \t]+)({quoted}|\S[^\n]*)", hidden, found[3]), text
    )


def _texts_in(text: str) -> Iterator[tuple[str, str]]:
    """Each value with its name, and each argument with the flag before it, whatever notation the file is in."""
    quoted = r"""("(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
    # Only from the start of a word: a word of a megabyte, e.g. a picture, is read once.
    # A value may be on the line after its name, if it is not a name itself (YAML).
    named = r"""(?<![\w.-])["']?([\w.-]+)["']?"""
    pairs = re.findall(rf"""{named}\s*[:=](?:\s*{quoted}(?!\s*:)|[ \t]*([^\s"',\]}}{{\[]+))""", text)
    flags = re.findall(rf"""["']--?([\w-]+)["']\s*,\s*{quoted}""", text)
    flags += re.findall(rf"""(?m)^[ \t]*- ["']?--?([\w-]+)["']?[ \t]*\n[ \t]*- (?:{quoted}|([^\s"'][^\n]*))""", text)
    for name, value, *bare in [*pairs, *flags]:
        try:
            yield name, json.loads(value) if value.startswith('"') else value.strip("'") or "".join(bare)
        except ValueError:
            yield name, value.strip('"')
