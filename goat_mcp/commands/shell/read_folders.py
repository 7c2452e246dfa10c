"""Programs that read all files below a folder: which words are such folders.

Programs that only list names (`ls`, `find` without `-exec`) are not here, and neither are git's stored files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from posixpath import dirname, join

from goat_mcp.commands.shell.file_use import FileUse, Operands, operands
from goat_mcp.commands.shell.read_only import only_reads
from goat_mcp.commands.shell.words import Words, bare_name

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
    """`piped`: the command reads the output of others."""
    name, rest = words[0], words[1:]
    if name in _GREPS or name == "rgrep":
        given = operands(rest, _GREP_VALUES)
        if name == "rgrep" or given.has(*_RECURSIVE_GREP) or "recurse" in given.value_of("-d", "--directories"):
            files = () if given.value_of("--include") else given.value_of("--exclude")
            leaves_out = (
                *(f"{one}/" for one in _names(tuple(one.rstrip("/") for one in given.value_of("--exclude-dir")))),
                *(f"{one}|" for one in _names(files)),
            )
            follows = given.has("-R", "--dereference-recursive")
            yield from _folders(_after_pattern(given) or (".",), leaves_out=leaves_out, follows=follows)
    elif name in _RIPGREPS:
        yield from _by_ripgrep(operands(rest, _RIPGREP_VALUES), piped=piped)
    elif name in _COPIES:
        given = operands(rest, _COPY_VALUES)
        if name in ("mv", "ln", "rsync") or given.has(*_RECURSIVE, "-l", "-s", "--link", "--symbolic-link"):
            target_is_last = not given.value_of("-t", "--target-directory")
            if name == "ln" and given.words:
                # The folder that a link lies in decides what it leads to.
                folders = (*given.value_of("-t", "--target-directory"), given.words[-1], dirname(given.words[-1]))
                sources = tuple(join(folder, source) for folder in folders for source in given.words)
                yield from (FileUse(text, may_write=True, below=True) for text in sources)
            # By a link what it leads to can be written, under another name.
            links = name == "ln" or given.has("-l", "-s", "--link", "--symbolic-link")
            for one in _folders(
                given.words[:-1] if target_is_last and len(given.words) > 1 else given.words,
                leaves_out=_left_out_by_rsync(given) if name == "rsync" else (),
                follows=given.has("-L", "--dereference", "--copy-links"),
            ):
                yield replace(one, may_write=links)
    elif name in ("tar", "bsdtar", "gtar"):
        yield from _by_tar(rest)
    elif name in ("zip", "7z", "7za"):
        given = operands(rest, "-x -i -P -t")
        if name != "zip" or given.has("-r", "-R", "--recurse-paths"):
            # `-x d` leaves out the entry of the folder, and nothing in it.
            below = tuple(one[:-1] for one in given.value_of("-x") if name == "zip" and one.endswith("/*"))
            leaves_out = _from_here(below) if set(given.words[1:]) <= {".", "./", "*"} else ()
            yield from _folders(given.words[1:], leaves_out=leaves_out, follows=True)
    elif name == "find":
        if any(_FIND_ACTS.match(word) for word in rest):
            for one in _folders(_find_starts(rest) or (".",), follows="-L" in rest):
                yield replace(one, may_write=not _find_only_reads(rest))
    elif name in ("diff", "colordiff"):
        given = operands(rest, "-x -X -U -C --exclude")
        if given.has("-r", "--recursive"):
            yield from _folders(given.words, leaves_out=_names(given.value_of("-x", "--exclude")), follows=True)
    elif name == "git" and any(_GIT_READS_UNTRACKED.match(word) for word in rest):
        yield from _folders((".", *(word for word in rest if not word.startswith("-"))), sees_hidden=True)


def _folders(
    texts: tuple[str, ...], *, leaves_out: tuple[str, ...] = (), follows: bool = False, sees_hidden: bool = True
) -> Iterator[FileUse]:
    for text in texts:
        yield FileUse(text, below=True, leaves_out=leaves_out, follows=follows, sees_hidden=sees_hidden)


def _after_pattern(given: Operands) -> tuple[str, ...]:
    return given.words if given.has(*_WITH_PATTERN) else given.words[1:]


def _by_ripgrep(given: Operands, *, piped: bool) -> Iterator[FileUse]:
    lists_only = given.has("--files", "--type-list", "--version", "--help")
    found = given.words if lists_only else _after_pattern(given)
    if lists_only or (piped and not found):
        return
    globs = given.value_of("-g", "--glob", "--iglob")
    # A later glob wins.
    counted = globs[max((at + 1 for at, glob in enumerate(globs) if not glob.startswith("!")), default=0) :]
    is_here = set(found) <= {".", "./"}
    left_out = tuple(_without_contents(glob[1:]) for glob in counted if not glob.startswith("!./"))
    yield from _folders(
        found or (".",),
        leaves_out=(
            *_names(left_out),
            *(_from_here(left_out) if is_here else ()),
            *_names(given.value_of("--ignore-dir")),
        ),
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
            given.words, leaves_out=_left_out_by_tar(rest, given), follows=given.has("-h", "--dereference")
        )


def _names(patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns that all programs read alike: a name, perhaps with `*` and `?`."""
    return tuple(one for one in patterns if re.fullmatch(r"[^/\[\]{}\\!|]+/?", one))


def _from_here(patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns that are a path without wildcards, from the searched folder."""
    plain = (one.removeprefix("./").strip("/") for one in patterns if "/" in one.rstrip("/") or one.endswith("/"))
    return tuple(f"/{one}" for one in plain if one and not re.search(r"[*?\[\]{}\\|]", one))


def _without_contents(pattern: str) -> str:
    """`secrets/**` leaves out the content of `/secrets`, from the searched folder."""
    stem = re.sub(r"/\*\*?\Z", "", pattern)
    return pattern if stem == pattern else f"/{stem}/".replace("//", "/")


def _left_out_by_rsync(given: Operands) -> tuple[str, ...]:
    # An earlier filter wins.
    has_others = given.value_of("--include", "--filter", "-f") or given.has("--include-from", "--files-from")
    return () if has_others else _names(given.value_of("--exclude"))


def _left_out_by_tar(rest: Sequence[str], given: Operands) -> tuple[str, ...]:
    if any(re.match(r"--(?:no-)?(?:anchored|wildcards|ignore-case|recursion)|--no-w|--anch", word) for word in rest):
        return ()
    first = next((at for at, word in enumerate(rest) if word in given.words[:1]), len(rest))
    # Options behind the first file have no effect.
    patterns = operands(rest[:first], _TAR_VALUES).value_of("--exclude")
    here = _from_here(patterns) if set(given.words) <= {".", "./"} else ()
    return (*_names(tuple(one.rstrip("/") if one.endswith("/*") else one.removesuffix("/") for one in patterns)), *here)


def _find_only_reads(rest: tuple[str, ...]) -> bool:
    """Whether find only runs programs that do not write what it finds."""
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
