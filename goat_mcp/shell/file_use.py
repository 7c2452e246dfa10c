"""A file as a script names it: a word, and what becomes of the file. Where the word leads is not known here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileUse:
    """`text` is a word after bash's unquoting, which may still hold `~`, `$HOME`, `$PWD` and wildcards.

    `writes`: the file is certainly changed, made or removed; else it is named, and perhaps read.
    `below`: so is what lies below it, if it is a directory, but for names that fit `leaves_out`; with `follows` also
    what links lead to, without `sees_hidden` no name that begins with a dot.
    `inside`: some file in it is written, whose name cannot be told.
    """

    text: str
    writes: bool = False
    below: bool = False
    inside: bool = False
    leaves_out: tuple[str, ...] = ()
    follows: bool = False
    sees_hidden: bool = True
