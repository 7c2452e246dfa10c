"""Paths whose change would let a later program run or grant itself rights: always asked about (R-FILE-9)."""

from __future__ import annotations

from pathlib import PurePath

_NAMES = frozenset(
    {
        ".mcp.json",
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
        ".inputrc",
        ".gitconfig",
        ".gitmodules",
        ".envrc",
        "config.fish",
    }
)
_FOLDERS = frozenset({".vscode", ".idea", ".cursor", ".claude", ".codex", ".gemini", ".zed", ".devcontainer", ".husky"})
_IN_GIT = frozenset({"hooks", "config", "config.worktree", "modules", "info"})


def protected_reason(path: str) -> str | None:
    """Why a change of this path always needs a person's word; None where it does not.

    Names are compared without case: on some file systems `.GIT/Hooks` is the same folder.
    """
    parts = [part.lower() for part in PurePath(path).parts]
    for index, part in enumerate(parts):
        after = parts[index + 1] if index + 1 < len(parts) else ""
        if part == ".git" and (after in _IN_GIT or not after):
            return "git runs or obeys it"
        if part.startswith(".goat") or part == "goat-mcp.yaml" or part == "goat.lock":
            return "it is goat-mcp's own configuration"
        if part in _FOLDERS and after:
            return "an editor or agent obeys it"
    if parts and parts[-1] in _NAMES:
        return "a shell or agent obeys it"
    return None
