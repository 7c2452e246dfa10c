"""The variables that keep reading git commands from running what a repository configures (R-SHELL-4).

Git takes configuration from variables, and the last value wins over the repository's own. Programs under fixed keys
(core.fsmonitor, gpg.program) are switched off by name. Filters, drivers and submodules have names the repository
chooses, so the caller lists the repository's keys (`LIST_KEYS`) and hands them in. Needs git 2.31 or newer.

Only the reading commands of a script get the variables: `git status; git commit` commits with the hooks and filters of
the repository, because the rule for `git commit` allows what a commit does, and its status runs none of them.

Options that would switch something back on (--ext-diff, --ignore-submodules=none) are not in the tables of
`options.git`, and a changed directory before git is refused by `rules`: it would be another repository. Transports
(remote.*.uploadpack, remote.*.vcs, url.*.insteadOf, core.gitProxy) run nothing because no protocol is allowed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from goat_mcp.commands.shell.options.git import only_reads
from goat_mcp.commands.shell.script_parsing import ShellScript

LIST_KEYS = ("config", "--show-scope", "--name-only", "--list", "-z")
"""Arguments of git that print what `repository_keys` reads; they run nothing."""

_BUILT_IN_DIFF = 'f() { diff -u "$2" "$5"; :; }; f'
"""Instead of an external diff: git has no way to say "none"."""
_FIXED = {
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.pager": "cat",
    "core.askpass": "",
    "core.sshcommand": "false",
    "core.editor": "false",
    "core.gitproxy": "",
    "credential.helper": "",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showsignature": "false",
    # Not `remerge`: that merges again, with the drivers of the repository.
    "log.diffmerges": "separate",
    "diff.ignoresubmodules": "dirty",
    "diff.submodule": "short",
    "status.submodulesummary": "false",
    "submodule.recurse": "false",
}
_VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    # A repository that lacks objects would fetch them, by programs of its choice.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_HOSTILE: Sequence[tuple[re.Pattern[str], Mapping[str, str]]] = tuple(
    (re.compile(pattern, re.DOTALL), values)
    for pattern, values in (
        (r"filter\..*\.\w+", {"clean": "", "smudge": "", "process": "", "required": "false"}),
        (r"diff\.external", {"external": _BUILT_IN_DIFF}),
        (r"diff\..*\.command", {"command": _BUILT_IN_DIFF}),
        (r"diff\..*\.textconv", {"textconv": "cat", "cachetextconv": "false"}),
        (r"merge\..*\.driver", {"driver": "false"}),
        (r"submodule\..*\.\w+", {"ignore": "dirty", "update": "none"}),
        (r"credential\..*\.helper", {"helper": ""}),
        # Newer git lets an alias replace a verb that is going to be removed.
        (r"alias\..*\.command", {"command": "version"}),
        (r"hook\..*\.\w+", {"command": "true", "enabled": "false"}),
        (r"trailer\..*\.(?:command|cmd)", {"command": "true", "cmd": "true"}),
        # git-lfs, which a user's own filter may run, reads the repository's configuration, too.
        (r"lfs\.extension\..*\.\w+", {"clean": "cat", "smudge": "cat"}),
        (r"lfs\.customtransfer\..*\.\w+", {"path": "false"}),
    )
)
"""By key as git lists it: what the last part of such a key is set to, beside others of the same name."""
_RUN_BY_NAME = re.compile(
    r"(?:command|cmd|program|helper|driver|hook|editor|pager|browser|textconv|external|askpass|difffilter|tunnel|httpd"
    r"|uploadpack|receivepack|smtpserver)\Z"
)
"""The end of a key that names a program, as git calls such keys: a key that we do not know counts as one, too."""
_WHOLE_SECTIONS: Mapping[str, str] = {"alias": "version", "pager": "false"}
"""Sections in which each key is a command."""
_TOOL_PATH = re.compile(r"(?:difftool|mergetool|browser|man|guitool)\..*\.path\Z", re.DOTALL)
_HOSTILE_SCOPES_NOT = ("system", "global", "command")
"""What the user or we configure. All else comes from the repository."""
_FUNCTION = "__goat_git_that_reads"
"""No command that a person would write; it is not exported, so hooks and scripts do not see it."""


def reading_commands(script: ShellScript) -> tuple[int, ...]:
    """Which commands of a plain script are git commands that only read."""
    return tuple(index for index, words in enumerate(script.commands) if only_reads(words))


def repository_keys(listed: str) -> list[str]:
    """The keys a repository itself sets, from what git prints for `LIST_KEYS` with `variables()` in its environment.

    Raises `ValueError` if git did not take these variables: then they would not help either.
    """
    fields = listed.split("\0")
    pairs = list(zip(fields[::2], fields[1::2], strict=False))
    if ("command", "core.hookspath") not in pairs:
        raise ValueError("this git takes no configuration from variables; it is older than 2.31")
    return [key for scope, key in pairs if scope not in _HOSTILE_SCOPES_NOT]


def variables(keys: Iterable[str] = ()) -> dict[str, str]:
    """The variables for a git command that only reads.

    `keys`: what the repository configures, and the keys of its .gitmodules, as git lists them.
    """
    values: dict[str, str] = {}
    for key in keys:
        values |= _harmless(key)
    values |= _FIXED
    counted = {"GIT_CONFIG_COUNT": str(len(values))}
    for index, (key, value) in enumerate(values.items()):
        counted[f"GIT_CONFIG_KEY_{index}"] = key
        counted[f"GIT_CONFIG_VALUE_{index}"] = value
    return {**counted, **_VARIABLES}


def hardened_script(text: str, given: Mapping[str, str]) -> str:
    """The text of a plain script in which each git command that only reads runs with the `given` variables."""
    # Here, because this brings tree_sitter: no start-up should pay for it.
    from goat_mcp.commands.shell.plain_commands import command_offsets, plain_commands
    from goat_mcp.commands.shell.syntax_tree import parse

    tree = parse(text)
    if tree is None:
        return text
    commands, _ = plain_commands(tree)
    source = text.encode("utf-8")
    for words, at in reversed(list(zip(commands, command_offsets(tree), strict=True))):
        if only_reads(words):
            source = source[:at] + f"{_FUNCTION} ".encode() + source[at:]
    assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in given.items())
    # On the first line, so that bash counts the lines of the script as they are.
    return f'{_FUNCTION}() {{ {assignments} "$@"; }}; {source.decode("utf-8")}'


def _harmless(key: str) -> dict[str, str]:
    """What makes a key of the repository's harmless; nothing if it names no program."""
    section, _, last = key.rpartition(".")
    for pattern, values in _HOSTILE:
        if pattern.fullmatch(key):
            return {f"{section}.{part}": value for part, value in values.items()}
    if (value := _WHOLE_SECTIONS.get(section)) is not None:
        return {key: value}
    return {key: "false"} if _RUN_BY_NAME.search(last) or _TOOL_PATH.match(key) else {}
