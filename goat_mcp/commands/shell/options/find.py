"""find: its tests and those of its actions that only print."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.commands.shell.options.table import names

_ALONE = names(
    "-H -L -P -O1 -O2 -O3 -d -depth -daystart -follow -mount -xdev -noleaf -ignore_readdir_race -warn -nowarn -empty "
    "-executable -readable -writable -false -true -nogroup -nouser -prune -quit -print -print0 -ls -not -a -and -o "
    "-or ! ( ) , -help --help -version --version"
)
_WITH_VALUE = names(
    "-maxdepth -mindepth -regextype -amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname "
    "-inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -newer -path -perm -regex -samefile -size "
    "-type -uid -used -user -wholename -xtype -printf"
)


def find_problem(words: Sequence[str]) -> str:
    """Empty, or which word of a find command does more than look and print."""
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word in _WITH_VALUE or (word.startswith("-newer") and len(word) == len("-newerXY")):
            if waiting:
                waiting.pop()
        elif word.startswith("-") and len(word) > 1 and word not in _ALONE:
            return f"{word} is not an option known to be harmless"
    return ""
