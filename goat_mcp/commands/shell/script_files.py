"""Every file that a script may name, and what cannot be followed exactly as bash would (R-SHELL-5b).

For rules that deny or ask, so in doubt more is found than is used. One rule for all programs: each word, and each part
of it that could be a path, counts as a path. Tables hold exceptions only: texts, patterns and names that are no paths.
The files that an interpreter's code or a script file names are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from goat_mcp.commands.shell.command_extraction import ExtractedCommand, ExtractedCommands
from goat_mcp.commands.shell.file_use import FileDoubt, FileUse, cannot_tell, parts_of
from goat_mcp.commands.shell.known_values import KnownValues, Text
from goat_mcp.commands.shell.options.file_options import FOLLOWED, is_followed, not_followed
from goat_mcp.commands.shell.read_folders import folders_read
from goat_mcp.commands.shell.read_only import (
    GIT_NAMES_ONLY,
    GREPS,
    LISTS,
    PRINTS,
    VERB_PROGRAMS,
    git_verb,
    not_paths,
    only_reads,
)
from goat_mcp.commands.shell.running_programs import WRAPPERS
from goat_mcp.commands.shell.words import Word
from goat_mcp.commands.shell.written_files import files_written

_MAX_USES = 20_000
_AWK_OPENS = re.compile(r"getline|system|ARG[VC]|@|(?<!\|)\|(?!\|)")
_AWK_WRITES = re.compile(r"print[^;}\n]*>")
_SED_RUNS = re.compile(r"(?:^|[\s;{}\d$!/,])e(?:\s|$)|[/|,#:@!%+][gpimIM0-9]*e[gpimIM0-9]*(?:[;}\n]|$)")
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_WRITES_IN_OTHER_WAYS = frozenset({"find", "sed", "gsed", "curl", "wget", "split", "uniq", "xxd", "man"})
"""`files_written` does not know what they write."""
_UNFOLLOWED_CHANGES = frozenset({"pushd", "popd"})


@dataclass(frozen=True)
class CommandFiles:
    """The files that one command names. `folders` may be directories that it starts in, or that its words are below."""

    uses: tuple[FileUse, ...]
    folders: tuple[str, ...] = ()
    doubts: tuple[FileDoubt, ...] = ()


@dataclass(frozen=True)
class DirectoryChanges:
    """`targets` of `cd`; `perhaps`: words of programs that start others, which may be directories to start them in."""

    targets: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    doubts: tuple[FileDoubt, ...] = ()


@dataclass(frozen=True)
class ScriptFiles:
    """All files that a script names, command by command, and where it changes the directory."""

    commands: tuple[CommandFiles, ...]
    changes: DirectoryChanges


def script_files(extracted: ExtractedCommands | None, hidden: str, home: str) -> ScriptFiles:
    """The files of a script with these commands. `hidden`: why there may be more of them, if there may."""
    found = extracted or ExtractedCommands()
    values = KnownValues(found.assigned, found.in_full, home)
    return ScriptFiles(tuple(_all_files(found, hidden, values)), _directory_changes(found, values))


def _all_files(found: ExtractedCommands, hidden: str, values: KnownValues) -> Iterator[CommandFiles]:
    """First the files of redirections and variables, then those of each command."""
    if hidden:
        yield CommandFiles((), doubts=(FileDoubt("the script", f"what it would run is not known: {hidden}"),))
    if values.problem:
        yield CommandFiles((), doubts=(FileDoubt("the script", values.problem),))
    for opened in found.opened:
        texts, doubt = values.texts(opened.word)
        uses = tuple(FileUse(text.text, text.magic, writes=opened.writes) for text in texts)
        doubt = doubt or next(filter(None, (cannot_tell(text.text) for text in texts)), "")
        doubts = (FileDoubt(opened.word.text, doubt, may_write=opened.writes),) if doubt else ()
        yield CommandFiles(uses, doubts=doubts)
    for one in found.assigned:
        texts, _ = values.texts(one.value)
        yield CommandFiles(tuple(FileUse(part, text.magic) for text in texts for part in parts_of(text.text)))
    for word in found.fed:
        parts = dict.fromkeys(part for text in values.texts(word)[0] for part in parts_of(text.text))
        yield CommandFiles(tuple(FileUse(part, may_write=True, contents="/" in part) for part in parts))
    count = 0
    for command in found.in_full:
        files = _files_of(command, values)
        count += len(files.uses)
        if count > _MAX_USES:
            yield CommandFiles((), doubts=(FileDoubt("the script", "it has too many words"),))
            return
        yield files


def _directory_changes(found: ExtractedCommands, values: KnownValues) -> DirectoryChanges:
    """Where `cd` goes, and options like it of programs that start others."""
    targets: list[str] = []
    perhaps: list[str] = []
    doubts: list[FileDoubt] = []
    for command in found.in_full:
        if command.name == "cd" or command.name in _UNFOLLOWED_CHANGES:
            named, doubt = _target(command, values)
            targets += named
            if command.name != "cd":
                doubt = "its stack of directories is not followed"
            elif command.repeats or (command.inner and found.has_loops):
                doubt = "it may run more than once"
            if doubt:
                shown = " ".join([command.name, *(word.text for word in command.words)])
                doubts.append(FileDoubt(shown, doubt))
        elif command.name in WRAPPERS:
            perhaps += _values_of_options([text.text for text in _texts(command.words, values)[0]])
    return DirectoryChanges(tuple(dict.fromkeys(targets)), tuple(dict.fromkeys(perhaps)), tuple(doubts))


def _target(command: ExtractedCommand, values: KnownValues) -> tuple[list[str], str]:
    words = [word for word in command.words if word.text == "-" or not re.fullmatch(r"-[LPe@]+|--|[-+]\d*", word.text)]
    if command.fed:
        return [], "its directory is not in the script"
    if not words:
        return ["~"], ""
    texts, doubt = values.texts(words[0])
    if words[0].text.startswith("-"):
        return [], "of its options only -L and -P are followed"
    wild = "*" in words[0].text or "?" in words[0].text
    doubt = doubt or ("a wildcard in it is not followed" if wild and not words[0].literal else "")
    return [text.text for text in texts], doubt or cannot_tell(words[0].text)


def _texts(words: Sequence[Word], values: KnownValues) -> tuple[list[Text], list[tuple[str, str]]]:
    found: list[Text] = []
    doubts: list[tuple[str, str]] = []
    for word in words:
        texts, doubt = values.texts(word)
        found += texts
        if doubt:
            doubts.append((word.text, doubt))
    return found, doubts


def _files_of(command: ExtractedCommand, values: KnownValues) -> CommandFiles:
    name = command.name
    program = ()
    if "/" in command.program.text:
        program = tuple(FileUse(part, contents=True) for part in parts_of(command.program.text))
    if name in PRINTS:
        # Only a wildcard shows something: names.
        words = [word for word in command.words if not word.literal]
        uses = (FileUse(text.text, magic=True) for text in _texts(words, values)[0] if re.search(r"[*?]", text.text))
        return CommandFiles((*program, *uses))
    texts, unknown = _texts(command.words, values)
    plain = tuple(text.text for text in texts)
    reads_only = only_reads(name, plain)
    knows_writes = is_followed(name) and name not in _WRITES_IN_OTHER_WAYS
    may_write = not reads_only and not knows_writes
    skipped = not_paths(name, plain)
    use = FileUse(
        "",
        may_write=may_write,
        contents=name not in LISTS and name not in ("find", "git", "chmod", "chown", "tee", "touch", "rm"),
    )
    uses = [
        replace(use, text=part, magic=text.magic, contents=use.contents and _may_be_folder(name, part))
        for at, text in enumerate(texts)
        if at not in skipped
        for part in parts_of(text.text)
    ]
    if name in ("sed", "gsed"):
        uses += [replace(use, text=path, may_write=True) for text in plain for path in _named_by_sed(text)]
    elif name in ("curl", "wget"):
        # The file that a download is named after.
        uses += [replace(use, text=re.split(r"[?#]", text)[0].rpartition("/")[2]) for text in plain if "/" in text]
    is_magic = any(text.magic for text in texts)
    certain = chain(files_written((name, *plain)), folders_read((name, *plain), piped=command.piped))
    uses += [replace(one, magic=is_magic) for one in certain]
    doubts = tuple(_doubts(command, plain, unknown, skipped, may_write=not reads_only))
    named = [text if at not in skipped else "" for at, text in enumerate(plain)]
    folders = named if name in ("tar", "gtar", "bsdtar") else [] if name in GREPS else _values_of_options(named)
    return CommandFiles(
        (*program, *dict.fromkeys(uses)), tuple(text for text in dict.fromkeys(folders) if text), doubts
    )


def _may_be_folder(name: str, part: str) -> bool:
    return "/" in part or name not in VERB_PROGRAMS


def _doubts(
    command: ExtractedCommand,
    plain: Sequence[str],
    unknown: Sequence[tuple[str, str]],
    skipped: frozenset[int],
    *,
    may_write: bool,
) -> Iterator[FileDoubt]:
    name = command.name
    if name in LISTS:
        return
    shown = " ".join([name, *plain])[:60]
    if command.fed and name not in WRAPPERS:
        yield FileDoubt(shown, "it is given names that are not in the script", may_write)
    is_names_only = name == "git" and git_verb(plain)[0] in GIT_NAMES_ONLY
    if not is_names_only and not (name == "find" and not _find_acts(plain)):
        messages = {plain[at] for at in skipped}
        for word, why in unknown:
            if word not in messages:
                yield FileDoubt(word, why, may_write)
    for at, text in enumerate(plain):
        if at not in skipped and (why := cannot_tell(text)):
            yield FileDoubt(text, why, may_write)
    if why := not_followed(name, plain):
        yield FileDoubt(shown, why, may_write or name in FOLLOWED)
    if name in _AWKS:
        code = " ".join(plain)
        if _AWK_OPENS.search(code):
            yield FileDoubt(name, "its program may open any file")
        elif _AWK_WRITES.search(code):
            yield FileDoubt(name, "its program may write any file")
    elif name in ("sed", "gsed") and any(_SED_RUNS.search(text) for at, text in enumerate(plain) if at not in skipped):
        yield FileDoubt(name, "its script may run commands")


def _find_acts(words: Sequence[str]) -> bool:
    return any(re.match(r"-(?:exec|ok|delete|fprint|fls)", word) for word in words)


def _named_by_sed(script: str) -> Iterator[str]:
    """The text behind each letter that could be one of its commands `r`, `R`, `w` and `W`, or a flag `w`."""
    for found in re.finditer(r"[rRwW]", script[:2000]):
        yield script[found.end() :].partition("\n")[0].strip(" ;}")


def _values_of_options(words: Sequence[str]) -> list[str]:
    """The values that options may have: in the same word or the next."""
    found: list[str] = []
    for at, word in enumerate(words):
        if not word.startswith("-") or len(word) < 2:
            continue
        _, equals, value = word.partition("=")
        found += [value] if equals else [word[2:]] if len(word) > 2 and not word.startswith("--") else []
        if at + 1 < len(words) and not words[at + 1].startswith("-"):
            found.append(words[at + 1])
    return [text for text in found if text]
