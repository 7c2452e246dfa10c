"""Harmless options of the small programs that print, search and count; scripts of sed that only print.

sed's commands `e` (run), `w` (write) and `r` (read a file), and the flags e and w of `s`, are refused with everything
else this reader does not know for sure. Seds differ in where a bracket expression ends and in whether a delimiter in
one counts, so only those are read whose every reading ends at the same place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goat_mcp.commands.shell.options.table import Arguments, OptionTable


def _one_file_at_most(arguments: Arguments) -> str:
    # uniq IN OUT writes OUT.
    # And so does `uniq IN -c` if options must come first, as on other systems.
    return "its second file would be written" if len(arguments.operands) > 1 or arguments.late else ""


def _only_a_format(arguments: Arguments) -> str:
    return next((f"{word} would set the clock" for word in arguments.operands if not word.startswith("+")), "")


def _only_page_names(arguments: Arguments) -> str:
    # A path would be formatted as a page of the attacker's making.
    return next((f"{word} is a file, no page" for word in arguments.operands if "/" in word), "")


def _prints_only(arguments: Arguments) -> str:
    # `%n` stores into a variable, whose subscript bash would run.
    stores = arguments.operands and re.search(r"%[^a-zA-Z%]*[hjlLtz]*n", arguments.operands[0])
    return "its format stores into a variable" if stores else ""


_COMMON = "help version"
_GREP = OptionTable(
    "EFGPivwxcLlqsobHhnTaIrRUzyZ0123456789",
    "efmABCD",
    "",
    f"{_COMMON} extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match "
    "word-regexp line-regexp count color colour files-without-match files-with-matches only-matching quiet silent "
    "no-messages byte-offset with-filename no-filename line-number initial-tab null text binary recursive "
    "dereference-recursive null-data line-buffered",
    "regexp file max-count label after-context before-context context binary-files devices directories exclude "
    "exclude-from exclude-dir include",
)
_CHECKSUM = OptionTable(
    "bctwz", "", "", f"{_COMMON} binary check tag text zero ignore-missing quiet status strict warn"
)

TEXT_PROGRAMS: Mapping[str, OptionTable] = {
    "cat": OptionTable(
        "AbeEnstTuv",
        long=f"{_COMMON} show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
    ),
    "tac": OptionTable("br", "s", "", f"{_COMMON} before regex", "separator"),
    "nl": OptionTable(
        "p", "bdfhilnsvw", "", f"{_COMMON} no-renumber", "body-numbering number-width starting-line-number"
    ),
    "head": OptionTable(
        "qvz", "nc", "", f"{_COMMON} quiet silent verbose zero-terminated", "lines bytes", numbers=True
    ),
    "tail": OptionTable(
        "qvzfF",
        "ncs",
        "",
        f"{_COMMON} follow quiet silent verbose zero-terminated retry",
        "lines bytes sleep-interval pid",
        numbers=True,
    ),
    "wc": OptionTable("cmlLw", long=f"{_COMMON} bytes chars lines max-line-length words", long_valued="total"),
    "cut": OptionTable(
        "nsz",
        "bcdf",
        "",
        f"{_COMMON} complement only-delimited zero-terminated",
        "bytes characters delimiter fields output-delimiter",
    ),
    "tr": OptionTable("cCdst", long=f"{_COMMON} complement delete squeeze-repeats truncate-set1"),
    "uniq": OptionTable(
        "cdDiuz",
        "fsw",
        "",
        f"{_COMMON} count repeated all-repeated group ignore-case unique zero-terminated",
        "skip-fields skip-chars check-chars",
        check=_one_file_at_most,
    ),
    "sort": OptionTable(
        "bdfgiMhnRrVcCmsuz",
        "ktS",
        "",
        f"{_COMMON} ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting "
        "month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check merge stable unique "
        "zero-terminated debug",
        "key field-separator buffer-size parallel sort batch-size",
    ),
    "comm": OptionTable(
        "123z", long=f"{_COMMON} check-order nocheck-order total zero-terminated", long_valued="output-delimiter"
    ),
    "join": OptionTable(
        "iz", "12aejotv", "", f"{_COMMON} ignore-case check-order nocheck-order header zero-terminated"
    ),
    "paste": OptionTable("sz", "d", "", f"{_COMMON} serial zero-terminated", "delimiters"),
    "fold": OptionTable("bs", "w", "", f"{_COMMON} bytes spaces", "width"),
    "expand": OptionTable("i", "t", "", f"{_COMMON} initial", "tabs"),
    "column": OptionTable("tx", "csoN", "", "table fillrows", "columns separator output-separator table-columns"),
    "rev": OptionTable(),
    "seq": OptionTable("w", "fs", "", f"{_COMMON} equal-width", "format separator", numbers=True),
    "diff": OptionTable(
        "abBcdeEHinNpqrstTuwyZ0123456789",
        "CIUWxX",
        "",
        f"{_COMMON} normal brief report-identical-files context unified ed rcs side-by-side left-column "
        "suppress-common-lines expand-tabs initial-tab recursive no-dereference new-file unidirectional-new-file "
        "ignore-file-name-case ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change "
        "ignore-all-space ignore-blank-lines strip-trailing-cr text minimal speed-large-files color show-c-function",
        "width tabsize exclude starting-file ignore-matching-lines label from-file to-file",
    ),
    "cmp": OptionTable("bls", "in", "", f"{_COMMON} print-bytes verbose quiet silent", "ignore-initial bytes"),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": OptionTable(
        "FisSvwxclLnNopqHIaUu0PhV.",
        "efmrtTgABCMjdE",
        "",
        f"{_COMMON} files json hidden no-hidden no-ignore no-ignore-vcs no-ignore-dot no-ignore-parent ignore-case "
        "smart-case case-sensitive fixed-strings invert-match word-regexp line-regexp count count-matches "
        "files-with-matches files-without-match only-matching quiet line-number no-line-number column no-column "
        "heading no-heading with-filename no-filename multiline multiline-dotall pcre2 text binary unrestricted "
        "stats trim vimgrep null null-data follow no-follow one-file-system passthru pretty byte-offset crlf "
        "no-config no-messages type-list block-buffered line-buffered auto-hybrid-regex max-columns-preview "
        "glob-case-insensitive no-mmap mmap no-unicode debug trace",
        "regexp file max-count replace type type-not glob iglob after-context before-context context max-columns "
        "threads max-depth encoding color colors sort sortr context-separator engine max-filesize path-separator "
        "ignore-file dfa-size-limit regex-size-limit type-add type-clear",
    ),
    "ls": OptionTable(
        "aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        "ITw",
        "",
        f"{_COMMON} all almost-all author escape ignore-backups directory dired classify color file-type full-time "
        "group-directories-first no-group human-readable si dereference-command-line dereference inode kibibytes "
        "literal hide-control-chars show-control-chars quote-name reverse recursive size context zero numeric-uid-gid "
        "dereference-command-line-symlink-to-dir",
        "block-size format hide hyperlink indicator-style ignore quoting-style sort time time-style tabsize width",
    ),
    "tree": OptionTable(
        "adflxJXisughDpqNQrtcUvFACS",
        long=f"{_COMMON} noreport dirsfirst gitignore prune matchdirs ignore-case du si timefmt "
        "filelimit inodes device",
        separate="LPI",
    ),
    "pwd": OptionTable("LP", long=_COMMON),
    "basename": OptionTable("az", "s", "", f"{_COMMON} multiple zero", "suffix"),
    "dirname": OptionTable("z", long=f"{_COMMON} zero"),
    "realpath": OptionTable(
        "emLPqsz",
        long=f"{_COMMON} canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero",
        long_valued="relative-to relative-base",
    ),
    "readlink": OptionTable("femnqsvz", long=f"{_COMMON} canonicalize no-newline quiet silent verbose zero"),
    "stat": OptionTable("Lft", "c", "", f"{_COMMON} dereference file-system terse cached", "format printf"),
    "file": OptionTable(
        "bhikLNnprsv0", "eFP", "", f"{_COMMON} brief mime mime-type mime-encoding keep-going dereference"
    ),
    "du": OptionTable(
        "0abcDhHklLmPsSx",
        "BdtX",
        "",
        f"{_COMMON} all apparent-size bytes total dereference-args human-readable "
        "count-links separate-dirs si summarize one-file-system time inodes null",
        "block-size max-depth threshold exclude exclude-from time-style",
    ),
    "df": OptionTable(
        "ahHiklPT", "Btx", "", f"{_COMMON} all human-readable inodes local portability print-type total output"
    ),
    "md5sum": _CHECKSUM,
    "sha1sum": _CHECKSUM,
    "sha256sum": _CHECKSUM,
    "sha512sum": _CHECKSUM,
    "whoami": OptionTable(long=_COMMON),
    "id": OptionTable("GgnruzZa", long=f"{_COMMON} group groups name real user zero context"),
    "uname": OptionTable(
        "asnrvmpio", long=f"{_COMMON} all kernel-name nodename kernel-release machine operating-system"
    ),
    "which": OptionTable("as", long="all"),
    "date": OptionTable(
        "uR",
        "dr",
        "I",
        f"{_COMMON} utc universal rfc-email iso-8601 debug",
        "date reference rfc-3339",
        check=_only_a_format,
    ),
    "man": OptionTable(
        "fkwa", "sS", "", f"{_COMMON} whatis apropos where path location all", "sections", check=_only_page_names
    ),
    "jq": OptionTable(
        "rcsnSejaMC",
        "",
        "",
        "raw-output compact-output slurp null-input sort-keys exit-status join-output ascii-output monochrome-output "
        "color-output tab raw-input seq stream",
    ),
    "cd": OptionTable("LP"),
    "split": OptionTable("dexu", "abClnt", "", f"{_COMMON} verbose", "suffix-length bytes line-bytes lines number"),
    "sleep": OptionTable(long=_COMMON),
    "true": OptionTable(long=_COMMON),
    "false": OptionTable(long=_COMMON),
    ":": OptionTable(own_first=True),
    "printf": OptionTable(own_first=True, check=_prints_only),
}
"""By program. `echo` needs none: it has no option that does anything but print."""


def _sends_no_file(arguments: Arguments) -> str:
    sent = next((value for value in arguments.values("-H", "--header") if value.startswith("@")), "")
    return f"would send the file {sent[1:]} as its headers" if sent else ""


def _writes_no_file(arguments: Arguments) -> str:
    # An output document is made or emptied with --spider, too.
    documents = arguments.values("-O", "--output-document")
    if documents == ("-",) or (not documents and arguments.has("--spider")):
        return ""
    return "would write a file, perhaps one that the server names; `wget -qO- URL` prints"


_CURL = OptionTable(
    "sSfLIivgG46",
    "XHAem",
    "",
    f"{_COMMON} silent show-error fail location head include verbose compressed",
    "request header user-agent referer max-time connect-timeout retry max-redirs",
    check=_sends_no_file,
)
_WGET = OptionTable(
    "qS",
    "OtT",
    "",
    f"{_COMMON} quiet no-verbose spider server-response",
    "output-document tries timeout",
    check=_writes_no_file,
)
WEB_PROGRAMS: Mapping[str, OptionTable] = {"curl": _CURL, "wget": _WGET}
_NO_READERS = frozenset({"split", "man"})
READERS = (frozenset(TEXT_PROGRAMS) - _NO_READERS) | {"echo", "find", "sed", "gsed", "tar", "ps", "uptime"}
"""Programs that print what they are told to read, with whatever options a rule lets them have, and neither write nor
run or heed what lies in the directory they are started in."""


_TABLE = OptionTable(
    "nErsuz",
    "e",
    "",
    "quiet silent regexp-extended separate unbuffered null-data posix debug help version",
    "expression",
)
_DELIMITERS = "/|,#:@_!%+"
# No `]` at the beginning of a bracket, no backslash, `[` or delimiter in it, no `\c`, which takes a further character.
_PARTS = {
    delimiter: (
        rf"(?>(?:[^\\\n\[{re.escape(delimiter)}]|\\[^\nc]"
        rf"|\[\^?+(?:[^\]\[\\\n{re.escape(delimiter)}]|\[:[a-z]+:\])+\])*)"
    )
    for delimiter in _DELIMITERS
}
_ADDRESS = re.compile(rf"\d+(?:~\d+)?|\$|[+~]\d+|/{_PARTS['/']}/[IM]*")
_SUBSTITUTIONS = {
    delimiter: re.compile(rf"{re.escape(delimiter)}(?:{part}{re.escape(delimiter)}){{2}}")
    for delimiter, part in _PARTS.items()
}
_FLAGS = re.compile(r"[gpiImM0-9]*")
_LABEL = re.compile(r"[ \t]*[A-Za-z0-9_]*")
_NUMBER = re.compile(r"[ \t]*\d*")
_PLAIN_COMMANDS = "pPdDqQnNgGhHxl=zF"
_COMMAND_END = re.compile(r"[ \t]*(?:[;\n}]|\Z)")


def sed_problem(words: Sequence[str]) -> str:
    """Empty, or why a sed command might do more than print."""
    arguments = _TABLE.read(words)
    if arguments.problem:
        return arguments.problem
    scripts = arguments.values("-e", "--expression")
    if not scripts or arguments.late:
        # If options must come first, as on other systems, the first operand is a script, whatever follows it.
        scripts = (*scripts, *arguments.operands[:1])
    for script in scripts:
        if not _only_prints(script):
            return f"its script {script[:40]!r} may do more than print"
    return ""


def _only_prints(script: str) -> bool:
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}":
            at += 1
            continue
        at = _after_addresses(script, at)
        command = script[at : at + 1]
        at += 1
        if command == "{":
            continue
        if command and command in "sy":
            at = _after_substitution(script, at, command)
        elif command and command in _PLAIN_COMMANDS:
            at = _end(_NUMBER, script, at)
        elif command and command in ":btT":
            # To some seds the label goes on to the end of the line: then even less is run.
            at = _end(_LABEL, script, at)
        else:
            return False
        at = _end(_COMMAND_END, script, at) if at >= 0 else -1
        if at < 0:
            return False
    return True


def _end(pattern: re.Pattern[str], script: str, at: int) -> int:
    """Where the match at this place ends, -1 without one."""
    match = pattern.match(script, at)
    return match.end() if match else -1


def _after_addresses(script: str, at: int) -> int:
    """The place of the command after its addresses."""
    if (after := _end(_ADDRESS, script, at)) >= 0:
        at = after
        if script[at : at + 1] == "," and (after := _end(_ADDRESS, script, at + 1)) >= 0:
            at = after
    while script[at : at + 1] in (" ", "\t", "!"):
        at += 1
    return at


def _after_substitution(script: str, at: int, command: str) -> int:
    """The place after `s/a/b/flags` or `y/a/b/`, -1 unless all of it is plain."""
    pattern = _SUBSTITUTIONS.get(script[at : at + 1])
    after = _end(pattern, script, at) if pattern is not None else -1
    return _end(_FLAGS, script, after) if after >= 0 and command == "s" else after
