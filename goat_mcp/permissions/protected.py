"""Paths whose change would let a later program run or grant itself rights: always asked about (R-FILE-9)."""

from __future__ import annotations

from pathlib import PurePath

_NAMES = frozenset(
    {
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".xprofile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc"),
        *(".gitconfig", ".gitmodules", ".envrc", "config.fish", ".xinitrc", ".xsession", ".xsessionrc"),
        *(
            ".mcp.json",
            ".claude.json",
            "claude_desktop_config.json",
            "mcp_config.json",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
        ),
        *(".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".gdbinit", ".lldbinit", ".pythonstartup"),
    }
)
_SUFFIXES = (".code-workspace", ".sublime-project", ".sublime-workspace")
_FOLDERS = frozenset(
    {
        *(".vscode", ".idea", ".cursor", ".zed", ".fleet", ".vs", ".devcontainer", ".husky"),
        *(".claude", ".codex", ".gemini", ".windsurf", ".kiro", ".roo", ".continue", ".clinerules", ".aider"),
    }
)


def protected_reason(path: str) -> str | None:
    """Why a change of this path always needs a person's word; None where it does not.

    Names are compared without case: on some file systems `.GIT/Hooks` is the same folder.
    """
    parts = [part.lower() for part in PurePath(path).parts]
    for index, part in enumerate(parts):
        if part == ".git":
            # All of it: hooks and config, but also what names other folders for them, and what git runs when resumed.
            return "git runs or obeys it"
        if part.startswith(".goat") or part == "goat-mcp.yaml" or part == "goat.lock":
            return "it is goat-mcp's own configuration"
        if part == "upstreams.json" and index and parts[index - 1] == "goat-mcp":
            return "it is goat-mcp's own configuration"
        if part in _FOLDERS or (part == "fish" and index and parts[index - 1] == ".config"):
            return "an editor or agent obeys it"
    if parts and (parts[-1] in _NAMES or parts[-1].endswith(_SUFFIXES)):
        return "a shell or agent obeys it"
    return None
