"""Programs that make, move and list files. A rule for one lets it do just that, to any file; options that would run
something or take more from elsewhere are not in the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goat_mcp.commands.shell.options.table import Arguments, OptionTable
from goat_mcp.commands.shell.words import names

_COMMON = "help version"
_COMPRESS = OptionTable(
    "cdfklnNqrtv123456789", long=f"{_COMMON} stdout decompress force keep list quiet recursive test verbose fast best"
)
_FD = OptionTable(
    "HIusigFaLp01q",
    "dteEScjo",
    "",
    f"{_COMMON} hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings "
    "absolute-path follow full-path print0 quiet prune one-file-system",
    "max-depth min-depth exact-depth type extension exclude size changed-within changed-before owner color threads "
    "max-results",
)
_BAT = OptionTable(
    "ApnSu",
    "lHr",
    "",
    f"{_COMMON} show-all plain number chop-long-lines unbuffered list-languages list-themes no-config",
    "language line-range highlight-line style theme color wrap tabs",
)

FILE_PROGRAMS: Mapping[str, OptionTable] = {
    "mkdir": OptionTable("pv", "m", "", f"{_COMMON} parents verbose", "mode"),
    "rmdir": OptionTable("pv", long=f"{_COMMON} parents verbose ignore-fail-on-non-empty"),
    "rm": OptionTable(
        "dfirRIv", long=f"{_COMMON} force recursive dir verbose interactive one-file-system preserve-root"
    ),
    "cp": OptionTable(
        "abdfiHlLnPprRsuvxT",
        "t",
        "",
        f"{_COMMON} archive force interactive no-clobber recursive update verbose preserve no-preserve reflink sparse "
        "no-dereference dereference link symbolic-link no-target-directory parents one-file-system",
        "target-directory",
    ),
    "mv": OptionTable(
        "bfinuvT",
        "t",
        "",
        f"{_COMMON} force interactive no-clobber update verbose no-target-directory",
        "target-directory",
    ),
    "touch": OptionTable("acmh", "dtr", "", f"{_COMMON} no-create no-dereference", "date reference time"),
    "ln": OptionTable(
        "sfinrvTLP",
        "t",
        "",
        f"{_COMMON} symbolic force interactive no-dereference relative verbose no-target-directory",
    ),
    # -x and its like are modes.
    "chmod": OptionTable("RcfvrwxXst", long=f"{_COMMON} recursive changes quiet silent verbose preserve-root"),
    "tee": OptionTable("aip", long=f"{_COMMON} append ignore-interrupts"),
    "gzip": _COMPRESS,
    "gunzip": _COMPRESS,
    "zcat": _COMPRESS,
    "ps": OptionTable(
        "aAdefFjlLmMNTvwxyHcVZ", "CgGopstuUqk", "", f"{_COMMON} forest no-headers", "sort format pid ppid user cols"
    ),
    "free": OptionTable("bkmghltvw", "sc", "", f"{_COMMON} human kibi mebi gibi total wide"),
    "uptime": OptionTable("ps", long=f"{_COMMON} pretty since"),
    "nproc": OptionTable(long=f"{_COMMON} all", long_valued="ignore"),
    "fd": _FD,
    "fdfind": _FD,
    "bat": _BAT,
    "batcat": _BAT,
}


_FIND_ALONE = names(
    "-H -L -P -O1 -O2 -O3 -d -depth -daystart -follow -mount -xdev -noleaf -ignore_readdir_race -warn -nowarn -empty "
    "-executable -readable -writable -false -true -nogroup -nouser -prune -quit -print -print0 -ls -not -a -and -o "
    "-or ! ( ) , -help --help -version --version"
)
_FIND_WITH_VALUE = names(
    "-maxdepth -mindepth -regextype -amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname "
    "-inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -newer -path -perm -regex -samefile -size "
    "-type -uid -used -user -wholename -xtype -printf"
)


def find_problem(words: Sequence[str]) -> str:
    """Empty, or which word of a find command does more than look and print."""
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word in _FIND_WITH_VALUE or (word.startswith("-newer") and len(word) == len("-newerXY")):
            if waiting:
                waiting.pop()
        elif word.startswith("-") and len(word) > 1 and word not in _FIND_ALONE:
            return f"{word} is not an option known to be harmless"
    return ""


def _only_lists(arguments: Arguments) -> str:
    if not arguments.has("-t", "--list"):
        return "only listing an archive (tar -tf) is known to be harmless"
    if any(":" in name for name in arguments.values("-f", "--file")):
        return "an archive with a colon in its name is fetched from another machine"
    return ""


_TAR = OptionTable(
    "tvzjJa",
    "f",
    "",
    "list verbose gzip bzip2 xz zstd auto-compress full-time utc help version",
    "file exclude",
    check=_only_lists,
)


def tar_problem(words: Sequence[str]) -> str:
    """Empty, or why a tar command does more than list."""
    if words[:1] and not words[0].startswith("-"):
        # Old style: each letter with a value takes one of the next words, in turn.
        if not re.fullmatch(r"[tvzjJa]*f?[tvzjJa]*", words[0]):
            return f"{words[0]} is not known to be harmless"
        letters, archive = words[0].replace("f", ""), words[1:2] if "f" in words[0] else ()
        words = [f"-{letters}", *(f"--file={name}" for name in archive), *words[1 + len(archive) :]]
    return _TAR.problem(words)
