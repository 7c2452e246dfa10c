"""The environment that keeps read-only git commands from running what a repository's config names (R-SHELL-4)."""

from __future__ import annotations

from goat_mcp.shell.script import ShellScript

_READING = frozenset(
    {"status", "log", "diff", "show", "branch", "rev-parse", "ls-files", "blame", "shortlog", "describe"}
)
_CONFIG = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "diff.external": "",
    "core.askPass": "",
    "credential.helper": "",
    "log.showSignature": "false",
}


def hardened_environment(script: ShellScript) -> dict[str, str]:
    """Variables to add for a plain script whose git commands only read; empty for any other."""
    git = [words for words in script.commands if words[0] == "git"]
    if script.not_plain or not git or not all(len(words) > 1 and words[1] in _READING for words in git):
        return {}
    counted = {"GIT_CONFIG_COUNT": str(len(_CONFIG))}
    for index, (key, value) in enumerate(_CONFIG.items()):
        counted[f"GIT_CONFIG_KEY_{index}"] = key
        counted[f"GIT_CONFIG_VALUE_{index}"] = value
    return {
        **counted,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }
