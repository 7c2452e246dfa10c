"""Programs that read all that lies below a folder they are given: which words are such folders.

What only lists names (`ls`, `find` without `-exec`) is not here, and neither is what git has stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from posixpath import dirname, join

from goat_mcp.shell.file_use import FileUse
from goat_mcp.shell.names import Words, bare_name
from goat_mcp.shell.operands import Operands, operands
from goat_mcp.shell.read_only import only_reads

_GREPS = frozenset({"grep", "egrep", "fgrep", "zgrep", "ugrep", "ggrep"})
_RECURSIVE_GREP = ("-r", "-R", "--recursive", "--dereference-recursive")
_GREP_VALUES = (
    "-e -f -m -A -B -C -d -D --regexp --file --include --exclude --exclude-dir --max-count --context --directories "
    "--after-context --before-context --exclude-from --color --label"
)
_RIPGREPS = frozenset({"rg", "ag", "ack"})
_RIPGREP_VALUES = (
    "-e -f -g -t -T -m -A -B -C -d -E -j -M -r --regexp --file --glob --iglob --type --type-not --max-count --context "
    "--after-context --before-context --max-depth --replace --sort --sortr --color --colors --encoding --engine "
    "--ignore-file --max-columns --max-filesize --pre --pre-glob --threads --type-add --ignore --ignore-dir"
)
_COPIES = frozenset({"cp", "scp", "rsync", "mv", "ln"})
_COPY_VALUES = "-t --target-directory -e --exclude --exclude-from --include --filter -S --suffix"
_RECURSIVE = ("-r", "-R", "-a", "--recursive", "--archive")
_TAR_VALUES = "-f -C -T -X -b --file --directory --exclude --files-from --exclude-from --transform"
_TAR_READS = ("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--concatenate")
_FIND_ACTS = re.compile(r"-(?:exec|ok|delete|fprint|fls)")
_GIT_READS_UNTRACKED = re.compile(r"--(?:no-in|untr)")
_WITH_PATTERN = ("-e", "-f", "--regexp", "--file")


def folders_read(words: Words, *, piped: bool) -> Iterator[FileUse]:
    """`piped`: what others print is on the command's standard input."""
    name, rest = words[0], words[1:]
    if name in _GREPS or name == "rgrep":
        given = operands(rest, _GREP_VALUES)
        if name == "rgrep" or given.has(*_RECURSIVE_GREP) or "recurse" in given.value_of("-d", "--directories"):
            leaves_out = given.value_of("--exclude-dir", "--exclude")
            follows = given.has("-R", "--dereference-recursive")
            yield from _folders(_after_pattern(given) or (".",), leaves_out=leaves_out, follows=follows)
    elif name in _RIPGREPS:
        yield from _by_ripgrep(operands(rest, _RIPGREP_VALUES), piped=piped)
    elif name in _COPIES:
        given = operands(rest, _COPY_VALUES)
        if name in ("mv", "ln", "rsync") or given.has(*_RECURSIVE, "-l", "-s", "--link", "--symbolic-link"):
            target_is_last = not given.value_of("-t", "--target-directory")
            if name == "ln" and given.words:
                # What a link leads to is told from the folder that it lies in.
                places = (*given.value_of("-t", "--target-directory"), given.words[-1], dirname(given.words[-1]))
                sources = tuple(join(place, source) for place in places for source in given.words)
                yield from (FileUse(text, may_write=True, below=True) for text in sources)
            # By a link what it leads to can be written, under another name.
            links = name == "ln" or given.has("-l", "-s", "--link", "--symbolic-link")
            for one in _folders(
                given.words[:-1] if target_is_last and len(given.words) > 1 else given.words,
                leaves_out=given.value_of("--exclude"),
                follows=given.has("-L", "--dereference", "--copy-links"),
            ):
                yield replace(one, may_write=links)
    elif name in ("tar", "bsdtar", "gtar"):
        yield from _by_tar(rest)
    elif name in ("zip", "7z", "7za"):
        given = operands(rest, "-x -i -P -t")
        if name != "zip" or given.has("-r", "-R", "--recurse-paths"):
            yield from _folders(given.words[1:], leaves_out=given.value_of("-x"), follows=True)
    elif name == "find":
        if any(_FIND_ACTS.match(word) for word in rest):
            for one in _folders(_find_starts(rest) or (".",), follows="-L" in rest):
                yield replace(one, may_write=not _find_only_reads(rest))
    elif name in ("diff", "colordiff"):
        given = operands(rest, "-x -X -U -C --exclude")
        if given.has("-r", "--recursive"):
            yield from _folders(given.words, leaves_out=given.value_of("-x", "--exclude"), follows=True)
    elif name == "git" and any(_GIT_READS_UNTRACKED.match(word) for word in rest):
        yield from _folders((".", *(word for word in rest if not word.startswith("-"))), sees_hidden=True)


def _folders(
    texts: tuple[str, ...], *, leaves_out: tuple[str, ...] = (), follows: bool = False, sees_hidden: bool = True
) -> Iterator[FileUse]:
    names = tuple(text.strip("/").removesuffix("/**").removesuffix("/*") for text in leaves_out)
    for text in texts:
        yield FileUse(text, below=True, leaves_out=names, follows=follows, sees_hidden=sees_hidden)


def _after_pattern(given: Operands) -> tuple[str, ...]:
    return given.words if given.has(*_WITH_PATTERN) else given.words[1:]


def _by_ripgrep(given: Operands, *, piped: bool) -> Iterator[FileUse]:
    lists_only = given.has("--files", "--type-list", "--version", "--help")
    found = given.words if lists_only else _after_pattern(given)
    if lists_only or (piped and not found):
        return
    globs = given.value_of("-g", "--glob", "--iglob")
    yield from _folders(
        found or (".",),
        leaves_out=(*(glob[1:] for glob in globs if glob.startswith("!")), *given.value_of("--ignore-dir")),
        follows=given.has("-L", "--follow"),
        sees_hidden=given.has("--hidden", "-.", "-u", "-uu", "-uuu", "--unrestricted"),
    )


def _by_tar(rest: tuple[str, ...]) -> Iterator[FileUse]:
    if rest and not rest[0].startswith("-"):
        # Old style: `tar cf a.tar dir`.
        rest = (f"-{rest[0]}", *rest[1:])
    given = operands(rest, _TAR_VALUES)
    if given.has(*_TAR_READS):
        yield from _folders(
            given.words, leaves_out=given.value_of("--exclude"), follows=given.has("-h", "--dereference")
        )


def _find_only_reads(rest: tuple[str, ...]) -> bool:
    """Whether all that find does to what it finds is to run programs that write none of it."""
    if any(re.match(r"-(?:delete|fprint|fls)", word) for word in rest):
        return False
    runs = [at for at, word in enumerate(rest) if re.match(r"-(?:exec|ok)", word)]
    return all(at + 1 < len(rest) and _writes_nothing(rest[at + 1], rest[at + 2 :]) for at in runs)


def _writes_nothing(name: str, rest: tuple[str, ...]) -> bool:
    end = next((at for at, word in enumerate(rest) if word in (";", "+")), len(rest))
    return only_reads(bare_name(name), rest[:end])


def _find_starts(rest: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for word in rest:
        if word in ("-L", "-P", "-H"):
            continue
        if word.startswith("-") or word in ("(", "!"):
            break
        found.append(word)
    return tuple(found)
