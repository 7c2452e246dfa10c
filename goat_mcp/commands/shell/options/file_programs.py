"""Programs that make, move and list files. A rule for one lets it do just that, to any file; options that would run
something or take more from elsewhere are not in the tables."""

from __future__ import annotations

from collections.abc import Mapping

from goat_mcp.commands.shell.options.table import OptionTable

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
