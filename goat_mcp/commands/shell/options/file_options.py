"""The options of programs that read or write the files they are given, as far as rules about files can follow them.

An option that reads names of files from somewhere, or a configuration, is in no table: what it names is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goat_mcp.commands.shell.options.file_programs import FILE_PROGRAMS, find_problem
from goat_mcp.commands.shell.options.table import OptionTable
from goat_mcp.commands.shell.options.text_programs import TEXT_PROGRAMS
from goat_mcp.commands.shell.words import names

_COMMON = "help version"
_COPY = OptionTable(
    "abcCdDfHilLnpPrRsTuvxzhqEAXUOWmFty0123456789ISgo",
    "eBM",
    "",
    f"{_COMMON} archive recursive verbose quiet checksum update links copy-links perms times owner group devices "
    "specials "
    "delete delete-before delete-after delete-excluded dry-run whole-file compress human-readable progress partial "
    "stats itemize-changes one-file-system existing ignore-existing inplace append acls xattrs numeric-ids relative "
    "prune-empty-dirs safe-links mkpath no-perms no-owner no-group no-times hard-links sparse force cvs-exclude",
    "exclude include filter rsh max-size min-size bwlimit timeout port chmod chown info out-format "
    "compare-dest link-dest suffix block-size",
)
_COMPRESSOR = OptionTable(
    "cdfklnNqrtvz0123456789aeh",
    "ST",
    "",
    f"{_COMMON} stdout to-stdout decompress uncompress compress force keep list quiet recursive test verbose fast best "
    "name no-name rm ultra extreme rsyncable no-progress",
    "suffix threads",
)
_AWK = OptionTable("bchNOPrsS", "vF", "", f"{_COMMON} posix traditional re-interval sandbox", "assign field-separator")
_ZIP = OptionTable(
    "rRqvjyufldeXDJkT0123456789", "xinPtO", "", f"{_COMMON} recurse-paths quiet junk-paths symlinks", "exclude include"
)
_MODE = OptionTable("RcfvhHLPrwxXstugoa", "", "", f"{_COMMON} recursive changes quiet silent verbose no-dereference "
                    "dereference preserve-root no-preserve-root", "reference from")  # fmt: skip
_DIFF = OptionTable(
    "abBcdeEHinNlpPqrstTuvwWyZ0123456789", "CIUxXDFL", "",
    f"{_COMMON} normal brief report-identical-files context unified ed side-by-side recursive no-dereference new-file "
    "ignore-case ignore-all-space ignore-space-change ignore-blank-lines strip-trailing-cr text minimal color "
    "show-c-function suppress-common-lines",
    "width exclude label from-file to-file ignore-matching-lines",
)  # fmt: skip
_TAR = OptionTable(
    "cxtruAvzjJaZpkmOhlSwWUiG",
    "fCbXKVNgH",
    "",
    f"{_COMMON} create extract get list append update concatenate verbose gzip gunzip bzip2 xz zstd auto-compress "
    "to-stdout dereference preserve-permissions same-owner no-same-owner no-same-permissions numeric-owner sparse "
    "keep-old-files skip-old-files overwrite unlink-first wildcards no-wildcards anchored no-anchored ignore-case "
    "one-file-system exclude-vcs exclude-caches full-time utc verify",
    "file directory exclude strip-components owner group mode mtime format sort blocking-factor "
    "label newer after-date show-transformed-names level",
)

_WITH_MORE: Mapping[str, OptionTable] = {
    "sort": OptionTable(
        "bdfgiMhnRrVcCmsuz",
        "ktSoT",
        "",
        f"{_COMMON} ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting "
        "month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check merge stable unique "
        "zero-terminated debug",
        "key field-separator buffer-size parallel sort batch-size output temporary-directory",
    ),
    "sed": OptionTable(
        "nErsuz",
        "el",
        "i",
        "quiet silent regexp-extended separate unbuffered null-data posix debug follow-symlinks in-place help version",
        "expression line-length",
    ),
    "tail": OptionTable(
        "qvzfFr",
        "ncs",
        "",
        f"{_COMMON} follow quiet silent verbose zero-terminated retry",
        "lines bytes sleep-interval pid",
        numbers=True,
    ),
    "cp": OptionTable(
        "abdfiHlLnPpRrsTuvxZ",
        "tS",
        "",
        f"{_COMMON} archive backup force interactive no-clobber recursive update verbose preserve no-preserve reflink "
        "sparse no-dereference dereference link symbolic-link no-target-directory parents one-file-system "
        "remove-destination strip-trailing-slashes attributes-only",
        "target-directory suffix",
    ),
    "mv": OptionTable(
        "bfinuvTZ", "tS", "", f"{_COMMON} backup force interactive no-clobber update verbose no-target-directory "
        "strip-trailing-slashes", "target-directory suffix",
    ),
    "ln": OptionTable(
        "sfinrvTLPb", "tS", "", f"{_COMMON} symbolic force interactive no-dereference relative verbose logical "
        "physical no-target-directory backup", "target-directory suffix",
    ),
    "install": OptionTable(
        "bcCdDpsTv", "gmotS", "", f"{_COMMON} backup compare directory preserve-timestamps strip verbose "
        "no-target-directory", "group mode owner target-directory suffix",
    ),
    "rsync": _COPY,
    "scp": OptionTable("346ABCOpqrRTv", "cDFiJlPX"),
    "touch": OptionTable("acmhf", "dtr", "", f"{_COMMON} no-create no-dereference", "date reference time"),
    "truncate": OptionTable("co", "sr", "", f"{_COMMON} no-create io-blocks", "size reference"),
    "shred": OptionTable("fuvxz", "ns", "", f"{_COMMON} force remove verbose exact zero", "iterations size"),
    "rmdir": OptionTable("pv", "", "", f"{_COMMON} parents verbose ignore-fail-on-non-empty"),
    "chmod": _MODE,
    "chown": _MODE,
    "chgrp": _MODE,
    "tee": OptionTable("aip", long=f"{_COMMON} append ignore-interrupts output-error"),
    **dict.fromkeys(("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd"), _COMPRESSOR),
    **dict.fromkeys(("zcat", "bzcat", "xzcat", "zstdcat"), _COMPRESSOR),
    **dict.fromkeys(("awk", "gawk", "mawk"), _AWK),
    "rgrep": TEXT_PROGRAMS["grep"],
    "zgrep": TEXT_PROGRAMS["grep"],
    "diff": _DIFF,
    "colordiff": _DIFF,
    "zip": _ZIP,
    "unzip": OptionTable("lpqouvjntzaCLXKfTZ12", "dxP", "", _COMMON),
    "curl": OptionTable(
        "sSfLIivgG046kOJ#NnavqRBjpl123",
        "oXHAemduFbcDEwxryYzCtPQU",
        "",
        f"{_COMMON} silent show-error fail fail-with-body location head include verbose compressed insecure get "
        "globoff remote-name remote-name-all remote-header-name no-buffer http1.1 http2 http3 ipv4 ipv6 progress-bar "
        "create-dirs json-output retry-all-errors retry-connrefused anyauth basic digest tcp-nodelay path-as-is "
        "no-progress-meter location-trusted tlsv1.2 tlsv1.3 ssl proto-default parallel styled-output",
        "output output-dir request header user-agent referer data data-raw data-binary data-ascii data-urlencode json "
        "url-query form form-string max-time connect-timeout retry retry-delay retry-max-time max-redirs user cookie "
        "cookie-jar dump-header write-out proxy noproxy range resolve connect-to url cacert cert key unix-socket "
        "interface limit-rate proto oauth2-bearer max-filesize trace trace-ascii stderr",
    ),
    "wget": OptionTable(
        "qScNrkKpHLxvbdE46",
        "OPtTUowlRADQI",
        "n",
        f"{_COMMON} quiet no-verbose verbose spider server-response continue timestamping recursive no-parent "
        "no-check-certificate no-clobber content-disposition mirror page-requisites show-progress no-cache "
        "convert-links adjust-extension no-directories trust-server-names https-only",
        "output-document directory-prefix output-file tries timeout header user-agent user password post-data method "
        "body-data progress level wait limit-rate accept reject quota waitretry max-redirect",
    ),
    "jq": OptionTable(
        "rcsnSejaMCRh",
        "fL",
        "",
        f"{_COMMON} raw-output compact-output slurp null-input sort-keys exit-status join-output ascii-output tab "
        "monochrome-output color-output raw-input seq stream args jsonargs",
        "arg argjson slurpfile rawfile from-file indent",
    ),
    "less": OptionTable("NSRFXiIeEKMmnqQrsuwWgG", "px", "", _COMMON),
    "more": OptionTable("dflpcsu", "n", numbers=True),
    "od": OptionTable("abcdfiloxv", "AjNtwS", "", _COMMON, "address-radix skip-bytes read-bytes format width"),
    "strings": OptionTable("af", "nte", "", f"{_COMMON} all", "bytes radix encoding"),
    "base64": OptionTable("di", "w", "", f"{_COMMON} decode ignore-garbage", "wrap"),
    "xxd": OptionTable("abeiprRudE", "cglosn", "", _COMMON),
    "hexdump": OptionTable("bcCdovx", "ens", "", _COMMON),
    "dd": OptionTable(long=_COMMON),
    **dict.fromkeys(("cpio", "pax", "afio", "ed", "ex", "m4"), OptionTable(long=_COMMON)),
}  # fmt: skip
_TAR_NAMES = frozenset({"tar", "gtar", "bsdtar"})
_NAMES_FROM_INPUT = frozenset({"cpio", "pax", "afio", "ed", "ex", "m4"})
_FIND_ACTIONS = names("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls")
_GIT_NAMES_FROM_FILE = re.compile(r"--(?:path|pathspec-f)")


FOLLOWED: Mapping[str, OptionTable] = {**TEXT_PROGRAMS, **FILE_PROGRAMS, **_WITH_MORE}
"""Programs of which we know every option in their table."""


def is_followed(name: str) -> bool:
    """Whether what the program reads and writes is known, if its options are."""
    return name in FOLLOWED or name in _TAR_NAMES or name == "find"


def not_followed(name: str, words: Sequence[str]) -> str:
    """Empty, or why the files that a command reads or writes are unknown."""
    name = name.removeprefix("g") if name in ("gsed", "gsort", "gtail", "ggrep") else name
    if name in _NAMES_FROM_INPUT and not any(word in ("--help", "--version") for word in words):
        return "its input names files"
    if name in _TAR_NAMES:
        if words[:1] and not words[0].startswith("-"):
            words = [f"-{letter}" for letter in words[0] if letter not in "fCbXKVNgH"] + list(words[1:])
        return _TAR.read(words).problem
    if name == "find":
        return find_problem(_without_actions(words))
    if name == "git":
        found = next((word for word in words if _GIT_NAMES_FROM_FILE.match(word)), "")
        return f"{found.partition('=')[0]} reads names of files" if found else ""
    if name in ("7z", "7za", "7zr"):
        return "a list names its files" if any(re.match(r"(?:-[ix]r?\d?)?[@!]", word) for word in words) else ""
    table = FOLLOWED.get(name)
    if table is None or name in ("echo", "printf", "chmod"):
        return ""
    return table.read(words).problem


def _without_actions(words: Sequence[str]) -> list[str]:
    """The words of find before what it runs. Unknown tests stay in."""
    left: list[str] = []
    is_running = False
    for word in words:
        if is_running:
            is_running = word not in (";", "+")
        elif word in ("-exec", "-execdir", "-ok", "-okdir"):
            is_running = True
        elif word not in _FIND_ACTIONS:
            left.append(word)
    return left
