"""What `import`, `eject`, `install` and `uninstall` show of a change of a file: a diff without secrets."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click

from goat_mcp.cli.hosts.host import Host
from goat_mcp.cli.hosts.importing import Change
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.hosts.this_account import WINDOWS_HOME_VARIABLE
from goat_mcp.cli.terminal import escaped, say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.core import platform
from goat_mcp.core.redaction import Redactor, is_likely_secret
from goat_mcp.processes.wsl import wsl_paths

_MAX_LINE = 4000
dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done and do nothing.")
project = click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="The servers of this project in place of the user's.",
)

windows_home = click.option(
    "--windows-home",
    metavar="DIR",
    envvar=WINDOWS_HOME_VARIABLE,
    help="In WSL: the folder of the Windows user, if it is not found.",
)


def refuse_a_model(dry: bool, what: str = "change which servers a host starts") -> None:
    """Such a change is the user's word. Raises `ToolError(PERMISSION)`."""
    if not dry:
        refuse_if_run_by_a_model(what)


def shown_diff(change: Change) -> str:
    """A unified diff; every secret that either side holds is taken out, and nothing steers a terminal.

    What stands in an environment or among headers may be one under any name: no value of those is shown.
    """
    redactor = _redactor(change)
    before, after = (
        _without_values((data or b"").decode("utf-8", "replace")) for data in (change.before, change.after)
    )
    names = [str(change.path) if data is not None else "(no file)" for data in (change.before, change.after)]
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), names[0], names[1], lineterm="")
    return escaped("\n".join(map(_shortened, redactor.text("\n".join(lines)).split("\n"))))


def _shortened(line: str) -> str:
    """Without the middle of a line that no person reads to its end: some hosts write all they keep on one."""
    left_out = len(line) - _MAX_LINE
    half = _MAX_LINE // 2
    return f"{line[:half]} ... {left_out} characters ... {line[-half:]}" if left_out > 0 else line


def say_diff(change: Change) -> None:
    text = shown_diff(change)
    if text:
        click.echo(text)


def say_change(source: Source, change: Change, *, already: str, done: str, dry_run: bool, as_json: bool) -> None:
    """Show the change of one host's file: `already` is said if nothing changes, `done` if it is written."""
    if as_json:
        fields = {"host": source.host.name, "file": str(change.path), "changed": change.is_one and not dry_run}
        click.echo(json.dumps({**fields, "diff": shown_diff(change), "dry_run": dry_run}))
        return
    say_diff(change)
    if not change.is_one:
        say(already)
    else:
        say("Nothing was written (--dry-run)." if dry_run else done)


def restart_hint(host: Host) -> str:
    """What has to be done for the host to see a change of its servers."""
    return host.after or f"Restart {host.title}."


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
