"""Which words of a command are only data for it: text that it prints, searches or sends, files, names of packages.

A denied program's name counts anywhere but in these words (see `mentions`). So in doubt a word is no data.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from goat_mcp.commands.shell.options.build_tools import CHECKERS, SINGLE_TABLES, TOOLS
from goat_mcp.commands.shell.options.file_programs import FILE_PROGRAMS
from goat_mcp.commands.shell.options.text_programs import TEXT_PROGRAMS
from goat_mcp.commands.shell.options.unsafe import unsafe_option
from goat_mcp.commands.shell.options.verbs import RUNNING_VERBS, VERB_TOOLS
from goat_mcp.commands.shell.running_programs import CONTAINERS, CONTAINERS_RUN_BY, value_attached
from goat_mcp.commands.shell.words import Words, bare_name, names

_RUN_NOTHING = names(
    "echo printf cd pushd popd dirs pwd true false : test [ [[ exit return kill type which whereis help apropos whatis "
    "tldr history jobs wait sleep chmod chown chgrp touch mkdir mkfifo rmdir stat file du df tree od xxd hexdump "
    "strings realpath readlink basename dirname pgrep pkill killall pidof lsof notify-send logger curl locate getent "
    "id groups diff colordiff cmp zgrep ugrep rgrep find"
)
"""The words of `find` behind -exec are a command of their own."""
_LOOK_UP_OR_NAME = (("command", "-v"), ("command", "-V"), ("git", "tag"), ("git", "branch"))
_KNOWN = {*TEXT_PROGRAMS, *FILE_PROGRAMS, *SINGLE_TABLES, *CHECKERS, *VERB_TOOLS, *TOOLS} | names(
    "git wget tar sed gsed"
)
"""Those whose harmless options are known (R-SHELL-4)."""
_TAKE_FILES = {*CHECKERS} | names(
    "make gmake wget systemctl service journalctl useradd usermod userdel groupadd gpasswd adduser tar gtar bsdtar zip "
    "unzip rsync scp sftp install vim vi nvim view nano less more code gcc g++ cc c++ clang clang++"
)
"""Programs for which a plain word is a file, a service, a user. Programs that they run are named by options in
`running_programs`, or by words that are not plain (`SHELL=rm`)."""
_TAKE_NAMES = {*CONTAINERS, *TOOLS, *VERB_TOOLS} | names(
    "apt apt-get aptitude apt-cache dnf yum apk pacman brew snap port zypper dpkg dpkg-query rpm gem composer pipx "
    "rustup conda mamba nvm asdf mise glab svn hg jj"
)
"""Programs for which a plain word is a package, an image, a branch, until a verb that runs something: `docker exec`."""
_RUNS_WHAT_FOLLOWS = (RUNNING_VERBS | CONTAINERS_RUN_BY | {"-exec", "config", "alias"}) - {"-e"}
_PLAIN_WORD = re.compile(r"(?!-)[\w@%+./~-]*[\w.~-]|[\w.-]+(?:@[\w.-]+)?:[\w./~-]*")
_NAMES_A_PROGRAM = re.compile(
    r"--?[\w-]*(?:exec|command|cmd|program|editor|pager|shell|invoke|hook|browser|tool|runner|wrapper)|[cxru]\w*[IF]\w*"
)
"""`-toolexec rm`, `--pager rm`; and the letters that tar takes without a dash."""
_TEXT_OPTIONS = {
    **dict.fromkeys(("svn", "hg", "jj"), ("-m", "--message")),
    **dict.fromkeys(
        ("gh", "glab"),
        ("-t", "--title", "-b", "--body", "-n", "--notes", "-m", "--message", "-d", "--description", "-S", "--search"),
    ),
}
"""Options whose value is text for people."""
_AWKS = names("awk gawk mawk nawk")
_RUN_BY_AWK = re.compile(r"system|getline|[|&@]|^-[^Fv]")
_IN_PLACE = re.compile(r"-[nEsruz]*i[.\w]*|--in-place(?:=.*)?")
_MODULE_OF_PYTHON = re.compile(r"(?:python|pypy)[\d.]*\Z")


def words_that_may_run(words: Words, *, wraps: bool) -> Iterator[int]:
    """The indexes of those words that could be a program, or hold text with one.

    `wraps`: the program runs others, and these are its own words.
    """
    name, rest = bare_name(words[0]), words[1:]
    if _MODULE_OF_PYTHON.match(name) and rest[:1] == ("-m",) and len(rest) > 1:
        yield from (at + 2 for at in words_that_may_run(words[2:], wraps=False))
    elif wraps:
        # Its plain words are a user, a host, a time; `su -s /bin/rm` is one that runs.
        yield from (at for at, word in enumerate(rest, 1) if "bin/" in word or not _PLAIN_WORD.fullmatch(word))
    elif not _is_harmless(name, words):
        takes_plain = name in _TAKE_FILES or name in _TAKE_NAMES or words[:2] == ("git", "remote")
        texts = set(_texts(rest, _TEXT_OPTIONS.get(name, ())))
        may_run = False
        verb = next((at for at, word in enumerate(rest) if not word.startswith("-")), None) if name == "git" else None
        for at, word in enumerate(rest):
            is_plain = takes_plain and not may_run and _PLAIN_WORD.fullmatch(word) is not None
            is_plain = is_plain and not (at and _NAMES_A_PROGRAM.fullmatch(rest[at - 1]))
            is_data = is_plain or at in texts or at == verb
            may_run = may_run or (name in _TAKE_NAMES and word in _RUNS_WHAT_FOLLOWS)
            if not is_data:
                yield at + 1
    elif name in TOOLS and "--" in rest:
        # For the project's own program.
        yield from range(rest.index("--") + 2, len(words))


def _is_harmless(name: str, words: Words) -> bool:
    """Whether it is a command that runs nothing which its words name."""
    if name in _RUN_NOTHING or words[:2] in _LOOK_UP_OR_NAME:
        return words[:2] != ("printf", "-v")
    if name in _AWKS:
        return not any(_RUN_BY_AWK.search(word) for word in words[1:])
    if name in ("sed", "gsed"):
        words = (name, *(word for word in words[1:] if not _IN_PLACE.fullmatch(word)))
    return name in _KNOWN and not unsafe_option((name, *words[1:]), named_words=2)


def _texts(rest: Sequence[str], options: Collection[str]) -> Iterator[int]:
    for at, word in enumerate(rest):
        attached = [value for option in options if (value := value_attached(option, word)) is not None]
        if attached:
            yield at
            if not attached[0]:
                yield at + 1
