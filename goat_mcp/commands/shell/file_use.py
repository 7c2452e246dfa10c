"""A file as a script names it: a word, and what becomes of the file. Where the word leads is not known here."""

from __future__ import annotations

from dataclasses import dataclass

HERE, NUMBER, TIME = "\x01", "\x02", "\x03"
"""Stand in a text for the directory the script is in, for a number, and for what `date` prints. No script holds
such characters."""


@dataclass(frozen=True)
class FileUse:
    """`text` is a word, or a part of one, with its variables filled in; `magic`: its `*` and `?` are wildcards.

    `writes`: the file is certainly changed, made or removed; `may_write`: perhaps it is; else it is named, and perhaps
    read. `contents`: a folder counts as what lies in it, if the whole of that is meant by a rule.
    `below`: so does what lies below it, but for names that fit `leaves_out` (of directories only behind which stands a
    `/`, of files only behind which stands a `|`; a path from the folder before which stands a `/`); with `follows` also
    what links lead to, without `sees_hidden` no name that begins with a dot.
    `inside`: some file in it is written, whose name is not known.
    """

    text: str
    magic: bool = False
    writes: bool = False
    may_write: bool = False
    contents: bool = False
    below: bool = False
    inside: bool = False
    leaves_out: tuple[str, ...] = ()
    follows: bool = False
    sees_hidden: bool = True


@dataclass(frozen=True)
class FileDoubt:
    """Something that cannot be followed as bash would: the `word`, why, and whether it may write."""

    word: str
    why: str
    may_write: bool = True
