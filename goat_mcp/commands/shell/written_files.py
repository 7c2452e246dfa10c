"""Programs that certainly change files: which of their words are those files.

What else a program may write (a build, a formatter, a patch's targets) is unknown. If it certainly writes files with
unknown names, their directory counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename, join

from goat_mcp.commands.shell.file_use import FileUse, Operands, operands
from goat_mcp.commands.shell.words import Words

_EVERY_OPERAND = {
    "tee": "",
    "touch": "-d -r -t --date --reference --time",
    "rm": "",
    "rmdir": "",
    "unlink": "",
    "mkdir": "-m --mode",
    "truncate": "-s -r --size --reference",
    "shred": "-n -s --iterations --size",
    "mkfifo": "-m --mode",
    "sponge": "",
    "trash": "",
}
"""With the options that take a value."""
_ALL_BUT_FIRST = {"chmod": "--reference", "chown": "--reference --from", "chgrp": "--reference", "setfacl": "-m -x -M"}
_COPIES = frozenset({"cp", "install", "ln", "rsync", "scp", "mv"})
_COPY_VALUES = (
    "-t --target-directory -S --suffix -m --mode -o --owner -g --group -e --exclude --exclude-from --include --filter"
)
_RECURSIVE = ("-r", "-R", "-a", "--recursive", "--archive")
_IN_PLACE = {
    "sed": "-e -f -l --expression --file --line-length",
    "perl": "-e -E -M -m -I",
    "ruby": "-e -r -I",
    "gawk": "-f -v -F -i --include",
}
_COMPRESSORS = frozenset({"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lzma", "compress"})
_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lzma", ".Z")
_ONLY_PRINTS = ("-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list", "--version", "--help")
_OUTPUT_OPTIONS = {
    "sort": ("-o", "--output"),
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
    "gcc": ("-o",),
    "cc": ("-o",),
    "clang": ("-o",),
    "g++": ("-o",),
}
_UNPACKERS = frozenset({"7z", "7za", "7zr", "unrar", "jar", "ar"})
_ANOTHER_MACHINE = re.compile(r"[^/]*:")


def files_written(words: Words) -> Iterator[FileUse]:
    name, rest = words[0], words[1:]
    if name in _EVERY_OPERAND:
        given = operands(rest, _EVERY_OPERAND[name])
        yield from _written(given.words, below=name == "rm" and given.has("-r", "-R", "--recursive"))
    elif name in _ALL_BUT_FIRST:
        given = operands(rest, _ALL_BUT_FIRST[name])
        skipped = 0 if given.has("--reference", "-m", "-x", "-M") else 1
        yield from _written(given.words[skipped:], below=given.has("-R", "--recursive"))
    elif name in _COPIES:
        yield from _by_copy(name, operands(rest, _COPY_VALUES))
    elif name in _IN_PLACE:
        yield from _in_place(name, rest)
    elif name in _COMPRESSORS:
        given = operands(rest, "-S --suffix -T --threads -o")
        if not given.has(*_ONLY_PRINTS):
            yield from _written(given.words)
            # `gunzip k.gz` makes k.
            yield from _written(tuple(word.rpartition(".")[0] for word in given.words if "." in word))
            yield from _written(tuple(f"{word}{suffix}" for word in given.words for suffix in _SUFFIXES))
    elif name == "dd":
        yield from _written(tuple(word[3:] for word in rest if word.startswith("of=")))
    elif name in _OUTPUT_OPTIONS:
        options = _OUTPUT_OPTIONS[name]
        yield from _written(tuple(text for text in operands(rest, " ".join(options)).value_of(*options) if text != "-"))
    elif name == "git":
        yield from _by_git(rest)
    elif name == "patch":
        given = operands(rest, "-p -i -d -o -r -D -F --strip --input --directory --output --reject-file")
        if not given.has("--dry-run", "--version", "--help"):
            yield from _written((*given.words[:1], *given.value_of("-o", "--output")))
            yield _unpacked(given.value_of("-d", "--directory"))
    else:
        yield from _by_archive(name, rest)


def _written(texts: tuple[str, ...], *, below: bool = False) -> Iterator[FileUse]:
    for text in texts:
        yield FileUse(text, writes=True, below=below)


def _by_copy(name: str, given: Operands) -> Iterator[FileUse]:
    if given.has("--dry-run", "--help", "--version") or (name == "install" and given.has("-d", "--directory")):
        yield from _written(given.words if not given.has("--dry-run", "--help", "--version") else ())
        return
    target = given.value_of("-t", "--target-directory")
    sources = given.words if target else given.words[:-1]
    target = target or given.words[-1:]
    if name == "mv":
        yield from _written(sources, below=True)
    is_deep = name in ("mv", "rsync") or given.has(*_RECURSIVE)
    for text in target:
        if name in ("rsync", "scp") and _ANOTHER_MACHINE.match(text):
            continue
        # `rsync -a d/ .` and `cp -rT d .` write what lies in d, by its names.
        fills = name == "rsync" or given.has("-T", "--no-target-directory")
        yield FileUse(text, writes=True, inside=fills, below=fills)
        # Into a directory, if it is one.
        keeps_paths = name == "rsync" or given.has("--parents")
        for source in sources:
            for named in (basename(source.rstrip("/")), *([source.lstrip("/")] if keeps_paths else [])):
                yield FileUse(join(text, named), writes=True, below=is_deep)


def _in_place(name: str, rest: tuple[str, ...]) -> Iterator[FileUse]:
    given = operands(rest, _IN_PLACE[name])
    if name == "gawk":
        if "inplace" in given.value_of("-i", "--include"):
            yield from _written(given.words if given.has("-f") else given.words[1:])
        return
    # `sed -ni`, `sed -i.bak`, `perl -pi -e`: letters behind an `i` are a suffix.
    # On macOS the suffix is a word of its own, mostly an empty one: `sed -i '' s/a/b/ f`.
    if given.has("-i", "-I", "--in-place"):
        has_script = given.has("-e", "-E", "-f", "--expression", "--file")
        yield from _written(tuple(filter(None, given.words if has_script else given.words[1:])))


def _by_git(rest: tuple[str, ...]) -> Iterator[FileUse]:
    words = list(rest)
    while words and words[0].startswith("-"):
        del words[: 2 if words[0] in ("-C", "-c", "--git-dir", "--work-tree") else 1]
    verb, after = (words[0], tuple(words[1:])) if words else ("", ())
    if verb in ("checkout", "restore"):
        paths = after[after.index("--") + 1 :] if "--" in after else ()
        if verb == "restore" and not paths:
            paths = operands(after, "-s --source").words
        if verb == "checkout" or "--staged" not in after or "--worktree" in after:
            yield from _written(paths, below=True)
    elif verb == "mv":
        yield from _by_copy("mv", operands(after))
    elif verb == "rm" and "--cached" not in after:
        yield from _written(operands(after).words, below=True)
    elif verb == "apply" and not any(word in after for word in ("--check", "--stat", "--cached", "--summary")):
        yield _unpacked(())
    elif verb == "clean" and (named := operands(after, "-e --exclude").words):
        yield from _written(named, below=True)
    elif verb in ("stash", "clean", "am") or (verb == "reset" and "--hard" in after):
        looks_only = {"list", "show", "-n", "--dry-run", "drop", "clear"}
        if looks_only.isdisjoint(after):
            yield _unpacked(())
    if verb == "checkout" and "--" not in after:
        # A word may be a revision or a path.
        yield from (FileUse(text, may_write=True, below=True) for text in operands(after).words)


def _unpacked(folders: tuple[str, ...]) -> FileUse:
    """Any file below a folder, by names that are not in the script."""
    return FileUse((folders or (".",))[-1], writes=True, inside=True, below=True)


def _by_archive(name: str, rest: tuple[str, ...]) -> Iterator[FileUse]:
    if name in ("tar", "bsdtar", "gtar"):
        if rest and not rest[0].startswith("-"):
            rest = (f"-{rest[0]}", *rest[1:])
        given = operands(rest, "-f -C -T -X -b --file --directory --exclude")
        if given.has("-x", "--extract", "--get") and not given.has("-O", "--to-stdout"):
            yield _unpacked(given.value_of("-C", "--directory"))
        elif given.has("-c", "-r", "-u", "--create", "--append", "--update"):
            yield from _written(tuple(text for text in given.value_of("-f", "--file") if text != "-"))
    elif name == "unzip":
        given = operands(rest, "-d -x -P")
        if not given.has("-l", "-p", "-t", "-Z", "-v", "-z"):
            yield _unpacked(given.value_of("-d"))
    elif name in _UNPACKERS and re.match(r"-?[a-zA-Z]*[xe]", rest[0] if rest else ""):
        yield _unpacked(())
    elif name == "zip":
        yield from _written(tuple(text for text in operands(rest, "-x -i -P -t").words[:1] if text != "-"))
