"""What `git status` prints, in fewer words: a line for each changed file, with the two letters of `git status -s`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.compression.compressor import Compressed
from goat_mcp.commands.shell.words import Words

_STAGED, _UNSTAGED, _UNMERGED, _UNTRACKED, _IGNORED = "staged", "unstaged", "unmerged", "untracked", "ignored"
_SECTIONS = {
    "Changes to be committed:": _STAGED,
    "Changes not staged for commit:": _UNSTAGED,
    "Unmerged paths:": _UNMERGED,
    "Untracked files:": _UNTRACKED,
    "Ignored files:": _IGNORED,
}
_CHANGE_LETTERS = {
    "new file": "A",
    "modified": "M",
    "deleted": "D",
    "renamed": "R",
    "copied": "C",
    "typechange": "T",
}
_UNMERGED_LETTERS = {
    "both modified": "UU",
    "both added": "AA",
    "both deleted": "DD",
    "added by us": "AU",
    "added by them": "UA",
    "deleted by us": "DU",
    "deleted by them": "UD",
}
_CHANGE = re.compile(r"\t(?P<what>[a-z ]+?): +(?P<path>.+)")
_HINT = re.compile(r" +\(.*\)|no changes added to commit.*|nothing added to commit but untracked files present.*")
_ON_BRANCH = re.compile(r"On branch (?P<branch>.+)")
_UP_TO_DATE = re.compile(r"Your branch is up to date with '(?P<upstream>.+)'\.")
_KEPT = re.compile(
    r"Your branch .+|and have .+ different commits each, .+|HEAD detached .+|Not currently on any branch\.|"
    r"No commits yet|Initial commit|nothing to commit.*|You (?:have|are) .+|All conflicts .+|"
    r".*\bin progress; onto .+|Last commands? done .+|Next commands? to do .+|No commands remaining\.|"
    r" {3}[a-z]+ [0-9a-f]{4,40} .+|Changed but not updated:|Unmerged paths:|Submodules? .+|It took .+"
)


def compress_git_status(words: Words, lines: Sequence[str]) -> Compressed | None:
    state = _Status()
    at = 0
    while at < len(lines) and state.takes(lines[at]):
        at += 1
    return Compressed(tuple(state.shown()), at) if state.began else None


class _Status:
    """The lines of one status, read one by one."""

    def __init__(self) -> None:
        self.began = False
        self._section = ""
        self._head: list[str] = []
        self._letters: dict[str, list[str]] = {}

    def takes(self, line: str) -> bool:
        """Read a line. Returns False if it is not of `git status`."""
        if line in _SECTIONS:
            self._section = _SECTIONS[line]
            self.began = True
            return True
        if line == "":
            return self.began
        if line.startswith("\t"):
            return self._takes_file(line)
        if _HINT.fullmatch(line):
            return self.began
        return self._takes_sentence(line)

    def shown(self) -> list[str]:
        return [*self._head, *(f"{''.join(letters)} {path}" for path, letters in self._letters.items())]

    def _takes_sentence(self, line: str) -> bool:
        if found := _ON_BRANCH.fullmatch(line):
            if self.began:
                return False  # that of another `git status`
            self._head.append(f"## {found['branch']}")
        elif found := _UP_TO_DATE.fullmatch(line):
            if not self._head:
                return False
            self._head[-1] += f"...{found['upstream']}"
        elif _KEPT.fullmatch(line):
            self._head.append(line.strip())
        else:
            return False
        self.began = True
        return True

    def _takes_file(self, line: str) -> bool:
        if self._section in (_UNTRACKED, _IGNORED):
            self._letters[line[1:]] = ["??" if self._section == _UNTRACKED else "!!"]
            return True
        change = _CHANGE.fullmatch(line)
        if change is None:
            return False
        what, path = change["what"], change["path"]
        if self._section == _UNMERGED:
            if what not in _UNMERGED_LETTERS:
                return False
            self._letters[path] = [_UNMERGED_LETTERS[what]]
            return True
        if what not in _CHANGE_LETTERS or self._section not in (_STAGED, _UNSTAGED):
            return False
        letters = self._letters.setdefault(path, [" ", " "])
        if len(letters) != 2:
            return False
        letters[0 if self._section == _STAGED else 1] = _CHANGE_LETTERS[what]
        return True
