"""Print the files whose types may differ from one system to another: python -m scripts.system_files.

`make test` checks these for the systems that it does not run on; `make lint` and `make test-all` check all. A file is
one of them if it asks for the system, imports what is one system's, or uses a name of `os` that not every system has.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("goat_mcp", "manifests")

_PORTABLE_OF_OS = (
    "path|environ|sep|altsep|pathsep|linesep|curdir|pardir|devnull|fspath|fsencode|fsdecode|PathLike|DirEntry|"
    "stat|lstat|fstat|scandir|listdir|walk|getcwd|chdir|getpid|getppid|mkdir|makedirs|rmdir|removedirs|remove|"
    "unlink|rename|replace|close|closerange|read|write|lseek|fdopen|open|utime|link|symlink|readlink|access|"
    "urandom|getenv|stat_result|O_RDONLY|O_WRONLY|O_RDWR|O_CREAT|O_EXCL|O_TRUNC|O_APPEND|F_OK|R_OK|W_OK|X_OK|"
    "SEEK_SET|SEEK_CUR|SEEK_END|_exit|abort|strerror|cpu_count|fsync|ftruncate|truncate|isatty|error|"
    "terminal_size|get_terminal_size"
)
_ASKS = re.compile(
    r"sys\.platform|\bos\.name\b"
    r"|core import [^\n]*\b(platform|posix)\b|core\.(posix|platform) |\b(linux|macos|windows)_\w+"
    r"|^\s*(import|from) (asyncio|ctypes|fcntl|grp|mmap|msvcrt|multiprocessing|psutil|pty|pwd|resource|select|selectors"
    r"|signal|socket|subprocess|termios|tty|win32\w*|winreg|pywintypes)\b"
    rf"|\bos\.(?!({_PORTABLE_OF_OS})\b)\w+|from os import"
    r"|\btime\.(clock_|tzset|pthread)|\bsys\.(getwindows|winver|\w*dlopenflags)|\.(owner|group)\(\)|shutil\.chown",
    re.MULTILINE,
)


def may_differ(source: str) -> bool:
    return _ASKS.search(source) is not None


def files() -> list[Path]:
    found = (file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))
    return [file for file in found if _is_of_one(file) or may_differ(file.read_text(encoding="utf-8"))]


def _is_of_one(file: Path) -> bool:
    return file.name.startswith(("linux_", "macos_", "windows_"))


if __name__ == "__main__":
    print(*(file.relative_to(ROOT) for file in files()))  # noqa: T201
