"""Every file that a script names, and every directory it may have changed to by then.

For rules that deny or ask, so in doubt more is found than is used. What programs open by themselves, and what an
interpreter's code or a script file names, cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from goat_mcp.shell.file_use import FileUse
from goat_mcp.shell.names import Words
from goat_mcp.shell.read_folders import folders_read
from goat_mcp.shell.script import ShellScript
from goat_mcp.shell.written_files import files_written

_CHANGES = frozenset({"cd", "pushd"})
_DIRECTORY_OPTIONS = {
    "git": ("-C", "--work-tree"),
    "env": ("-C", "--chdir"),
    "make": ("-C", "--directory"),
    "tar": ("-C", "--directory"),
    "sudo": ("-D", "--chdir"),
}


def file_uses(script: ShellScript) -> Iterator[FileUse]:
    yield from script.opened
    for words in script.seen:
        for word in words[1:]:
            for text in _names_in(word):
                yield FileUse(text)
        yield from files_written(words)
        yield from folders_read(words, piped=words in script.piped)


def changes_of_directory(script: ShellScript) -> Iterator[str]:
    """Where `cd` and options like it go, in the order of the script."""
    for words in script.seen:
        yield from _changes(words)


def _changes(words: Words) -> Iterator[str]:
    name, rest = words[0], words[1:]
    if name in _CHANGES:
        target = next((word for word in rest if not word.startswith(("-", "+"))), None)
        if target is not None:
            yield target
        elif name == "cd" and "-" not in rest:
            yield "~"
        return
    options = _DIRECTORY_OPTIONS.get(name, ())
    for at, word in enumerate(rest):
        option, equals, value = word.partition("=")
        if option not in options:
            if options and word.startswith(options[0]) and len(word) > 2:
                yield word[2:]
        elif equals:
            yield value
        elif at + 1 < len(rest):
            yield rest[at + 1]


def _names_in(word: str) -> Iterator[str]:
    """The paths that a word may hold: `k`, `--file=k`, `if=k`, `-fk`, `@k`, `file:///k`."""
    if not word.startswith("-"):
        yield word
    elif not word.startswith("--") and len(word) > 2:
        yield word[2:]
    _, equals, value = word.partition("=")
    if equals and value:
        yield value
        word = value
    if word.startswith("@"):
        yield word[1:]
    elif word.startswith("file://"):
        yield word.removeprefix("file://")
