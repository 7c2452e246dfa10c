"""Options whose value is a command or a text that a shell runs, of programs that otherwise run nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.shell.words import Word

_MIN_ABBREVIATED = len("--x")
_TEXT_OF = {
    "split": "--filter",
    "tar": "--checkpoint-action --to-command --use-compress-program --info-script --new-volume-script --rsh-command "
    "-I -F",
    "sort": "--compress-program",
    "rg": "--pre --hostname-bin",
    "man": "--pager --html -P -H",
    "zip": "--unzip-command -TT",
    "rsync": "--rsh --rsync-path -e",
    "scp": "-S -o",
    "sftp": "-S -o",
    "svn": "--diff-cmd --diff3-cmd --editor-cmd --merge-cmd --config-option",
    "hg": "--config",
    "bat": "--pager",
    "nc": "--exec --sh-exec --lua-exec -e -c",
    "make": "--eval",
    "npm": "--script-shell --call -c",
    "npx": "--call -c",
    "ssh": "-o",
    "less": "",
    "xterm": "-e",
    "wget": "--use-askpass",
    "hyperfine": "--prepare --setup --cleanup --conclude -p -s -c",
    "gdb": "--eval-command --init-eval-command -ex -iex",
    "vim": "--cmd -c",
    "nodemon": "--exec -x",
    "nix-shell": "--run --command",
    "nix": "--command -c",
    "vagrant": "--command -c",
    # Of bash itself.
    "mapfile": "-C",
    "compgen": "-C",
    "complete": "-C",
}
_SAME = {
    "gtar": "tar",
    "bsdtar": "tar",
    "gsort": "sort",
    "gsplit": "split",
    "batcat": "bat",
    "ncat": "nc",
    "netcat": "nc",
    "gmake": "make",
    "readarray": "mapfile",
    **dict.fromkeys(("vi", "nvim", "view", "ex", "gvim", "rvim", "vimdiff"), "vim"),
}
_MARKED = re.compile(r"!|\b(?:shell|pipe|exec|hooks)\b|command[= ]", re.IGNORECASE)
_ONLY_MARKED = frozenset({"vim", "gdb", "hg", "ssh", "less"})
"""Their values are of a language of their own, which has words for running something."""
_BEFORE_TEXT = re.compile(r"(?:exec=|[\w.-]+=!?|!|shell |:?!|\|)")
"""What stands before the command: tar's `exec=`, hg's `alias.x=!`, `!` of editors and debuggers."""


def texts_of_options(name: str, rest: Sequence[Word]) -> list[Word]:
    """What the options among a program's arguments make a shell run. Abbreviated, attached and in clusters, too."""
    program = _SAME.get(name, name)
    options = _TEXT_OF.get(program, "").split()
    found: list[Word] = []
    for index, word in enumerate(rest):
        if program in ("vim", "less") and word.text.startswith("+"):
            found.append(Word(word.text.partition("!")[2], word.literal))
        for option in options:
            attached = value_attached(option, word.text)
            if attached is None:
                continue
            value = Word(attached, word.literal) if attached else next(iter(rest[index + 1 : index + 2]), None)
            if value is not None and (program not in _ONLY_MARKED or _MARKED.search(value.text)):
                found.append(value)
                # With and without what could be the program's own word for it.
                found.append(Word(_BEFORE_TEXT.sub("", value.text, count=1), value.literal))
            break
    return found


def value_attached(option: str, word: str) -> str | None:
    """The value in the same word, empty if it is the next word; None where the word is not this option."""
    if option.startswith("--"):
        name, _, value = word.partition("=")
        matches = name == option or (len(name) >= _MIN_ABBREVIATED and option.startswith(name))
        return value if matches else None
    if len(option) > 2:
        return "" if word == option else None
    match = re.fullmatch(rf"-[A-Za-z0-9]*?{re.escape(option[1])}(.*)", word, re.DOTALL)
    return match[1] if match else None
