"""The environment that keeps reading git commands from running what a repository configures (R-SHELL-4).

Git takes configuration from variables, and the last value wins over the repository's own. Programs under fixed keys
(core.fsmonitor, gpg.program) are switched off by name. Filters, diff drivers and submodules have names the repository
chooses, so the caller lists the repository's keys (`LIST_KEYS`) and hands them in. Needs git 2.31 or newer.

Options that would switch something back on (--ext-diff, --ignore-submodules=none) are not in the tables of
`options.git`, and a changed directory before git is refused by `rules`: it would be another repository.
"""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.shell.options.git import READING_VERBS, git_verb
from goat_mcp.shell.script import ShellScript

LIST_KEYS = ("config", "--show-scope", "--name-only", "--list", "-z")
"""Arguments of git that print what `repository_keys` reads; they run nothing."""

_BUILT_IN_DIFF = 'f() { diff -u "$2" "$5"; :; }; f'
"""Instead of an external diff: git has no way to say "none"."""
_FIXED = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.askPass": "",
    "core.sshCommand": "false",
    "core.editor": "false",
    "core.gitProxy": "",
    "credential.helper": "",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "diff.ignoreSubmodules": "dirty",
    "diff.submodule": "short",
    "status.submoduleSummary": "false",
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


def reads_git(script: ShellScript) -> bool:
    """Whether it is a plain script with git commands, and none of them but reading ones."""
    verbs = [git_verb(words) for words in script.commands if words[0] == "git"]
    return bool(verbs) and all(verb in READING_VERBS for verb in verbs)


def repository_keys(listed: str) -> list[str]:
    """The keys a repository itself sets, from what git prints for `LIST_KEYS`."""
    fields = listed.split("\0")
    return [key for scope, key in zip(fields[::2], fields[1::2], strict=False) if scope in ("local", "worktree")]


def hardened_environment(script: ShellScript, keys: Sequence[str] = ()) -> dict[str, str]:
    """Variables to add for a plain script whose git commands only read; empty for any other.

    `keys`: what the repository configures, and the keys of its .gitmodules.
    """
    if not reads_git(script):
        return {}
    values = {**_FIXED, **_by_name(keys)}
    counted = {"GIT_CONFIG_COUNT": str(len(values))}
    for index, (key, value) in enumerate(values.items()):
        counted[f"GIT_CONFIG_KEY_{index}"] = key
        counted[f"GIT_CONFIG_VALUE_{index}"] = value
    return {**counted, **_VARIABLES}


def _by_name(keys: Sequence[str]) -> dict[str, str]:
    """Values for keys whose names the repository chooses."""
    values: dict[str, str] = {}
    for key in keys:
        section, _, last = key.rpartition(".")
        if section.startswith("filter."):
            values |= {f"{section}.{part}": "" for part in ("clean", "smudge", "process")}
            values[f"{section}.required"] = "false"
        elif (section == "diff" and last == "external") or (section.startswith("diff.") and last == "command"):
            values[key] = _BUILT_IN_DIFF
        elif section.startswith("diff.") and last == "textconv":
            values[key] = "cat"
        elif section.startswith("submodule."):
            values[f"{section}.ignore"] = "dirty"
        elif section.startswith("credential.") and last == "helper":
            values[key] = ""
    return values
