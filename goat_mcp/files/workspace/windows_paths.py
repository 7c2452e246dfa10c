"""Windows paths as text: what a client sends becomes a drive and names below it, or a refusal that says what to send.

Nothing is looked up here, so this runs on every system. A name that Windows would read as another one (`nul.txt`,
`file.`, `file::$DATA`) is refused and never repaired: what was checked has to be what is opened.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle

Names = tuple[str, ...]
Holds = Callable[[str, str], bool]
"""Whether the directory of this path has an entry with exactly this long name."""

MAX_NAME_UNITS = 255
MAX_PATH_UNITS = 32_000
"""Windows takes 32,767 UTF-16 units, and the prefix for long paths is among them."""
_SHOWN_CHARS = 300
_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|CLOCK\$|(?:COM|LPT)[0-9¹²³])")
_FORBIDDEN = frozenset('<>"|?*')
_METADATA = frozenset(
    {"$MFT", "$MFTMIRR", "$LOGFILE", "$VOLUME", "$ATTRDEF", "$BITMAP", "$BOOT", "$BADCLUS", "$SECURE", "$UPCASE"}
    | {"$EXTEND", "$QUOTA", "$OBJID", "$REPARSE"}
)
_ENCODED_SEPARATOR = re.compile(r"%(?:2f|5c)", re.IGNORECASE)
_SHORT_BASE = re.compile(r"[^.]*~[0-9]+")
_SHORT_BASE_CHARS = 8
_SHORT_SUFFIX_CHARS = 3


@dataclass(frozen=True)
class DrivePath:
    """An absolute path without `.` and `..`. `drive` is one capital letter."""

    drive: str
    names: Names

    @property
    def text(self) -> str:
        """As Windows writes it: `C:\\dir\\file`."""
        return f"{self.drive}:\\" + "\\".join(self.names)

    @property
    def all_names(self) -> Names:
        """The drive is the first of them: `("C:", "dir", "file")`."""
        return (f"{self.drive}:", *self.names)


def as_in_rules(path: str) -> str:
    """An absolute path as rules about paths write it: on Windows `/c/dir/file` for `C:\\dir\\file`.

    Source: Claude Code, "Permissions": paths are normalized to POSIX form before matching.
    """
    if platform.SYSTEM != "windows":
        return path
    path = path.replace("\\", "/")
    return f"/{path[0].lower()}{path[2:]}" if _DRIVE.match(path) else path


def nothing_held(folder: str, name: str) -> bool:
    """A `Holds` that knows of no directory."""
    return False


def parse_windows_path(asked: str, holds: Holds = nothing_held) -> DrivePath:
    """The path that is meant. `holds` is asked for names that look like short ones (`PROGRA~1`).

    Raises `ToolError`: PATH_RELATIVE for a relative path, PATH_OUTSIDE for another machine or a device, INPUT.
    """
    text = _local_path(asked).replace("/", "\\")
    if text.startswith("\\"):
        raise _rooted(asked, text)
    if not _DRIVE.match(text):
        raise ToolError(
            ErrorCode.PATH_RELATIVE, f"not an absolute path: {_shown(asked)}", "Send one with its drive: C:\\dir\\file."
        )
    drive, below = text[0].upper(), text[2:]
    if not below.startswith("\\"):
        raise _refused(
            asked,
            "is relative to the current directory of its drive",
            f"Send an absolute path: {drive}:\\{_shown(below)}.",
        )
    names = parse_names(below, asked=asked)
    if names and names[0].upper() in _METADATA:
        raise _refused(asked, f"names {names[0]}, which belongs to the file system", "Choose another path.")
    path = DrivePath(drive, names)
    _check_short_names(path, asked, holds)
    return path


def parse_names(below: str, *, asked: str) -> Names:
    """The names of a path below a directory, each `..` taken back. `asked` is the path in the caller's words.

    Windows takes `..` back as text as well; and no link is ever followed, so it has no other meaning.
    """
    names: list[str] = []
    for name in below.replace("/", "\\").split("\\"):
        if name == "..":
            if not names:
                raise _refused(
                    asked, "leaves its drive or directory by ..", "Send an absolute path without ..", outside=True
                )
            names.pop()
        elif name not in ("", "."):
            _check_name(name, asked)
            names.append(name)
    if sum(map(_units, names)) + len(names) > MAX_PATH_UNITS:
        raise _refused(asked, f"is longer than {MAX_PATH_UNITS:,} characters", "Choose a shorter path.")
    return tuple(names)


def looks_short(name: str) -> bool:
    """Whether Windows could have made this name for a longer one: `PROGRA~1`, `SETTIN~2.JSO`."""
    base, _, suffix = name.partition(".")
    return (
        len(base) <= _SHORT_BASE_CHARS
        and len(suffix) <= _SHORT_SUFFIX_CHARS
        and "." not in suffix
        and _SHORT_BASE.fullmatch(base) is not None
    )


def _local_path(asked: str) -> str:
    """The path in a `file:` URL; another text as it is."""
    if asked[:5].lower() != "file:":
        return asked
    rest = asked[5:]
    if not rest.startswith("//"):
        raise _refused(asked, "is not a complete URL", "Send file:///c:/dir/file or C:\\dir\\file.")
    host, slash, path = rest[2:].partition("/")
    if not slash or host.lower() not in ("", "localhost"):
        raise _refused(
            asked,
            "names another computer, which would be sent the user's credentials",
            "Send a path on a local drive: file:///c:/dir/file.",
            outside=True,
        )
    if "?" in path or "#" in path or _ENCODED_SEPARATOR.search(path):
        raise _refused(
            asked, "has a query, a fragment or an encoded separator", "Write ? and # as %3F and %23, or send a path."
        )
    try:
        local = unquote_to_bytes(path).decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise _refused(asked, "is not UTF-8 text behind its % signs", "Send it as a path: C:\\dir\\file.") from None
    return local if _DRIVE.match(local) else f"/{local}"


def _rooted(asked: str, text: str) -> ToolError:
    """What begins with a separator: a share, a device, or the root of whatever drive is current."""
    start = text[:4]
    if start in ("\\\\?\\", "\\\\.\\", "\\??\\") or text[:3] in ("\\\\?", "\\\\.") or "globalroot" in text.lower():
        return _refused(
            asked, "is a device path, for which Windows checks no names", "Send C:\\dir\\file.", outside=True
        )
    if start[:2] == "\\\\":
        return _refused(
            asked,
            "is on another computer, which would be sent the user's credentials",
            "Send a path on a local drive: C:\\dir\\file.",
            outside=True,
        )
    first, _, rest = text[1:].partition("\\")
    if len(first) == 1 and first.isascii() and first.isalpha():
        meant = f"{first.upper()}:\\{rest}"
        return _refused(asked, "has no drive", f"Probably meant: {_shown(meant)}.")
    return _refused(asked, "has no drive, so it depends on the current one", "Send C:\\dir\\file.")


def _check_name(name: str, asked: str) -> None:
    if ":" in name:
        raise _refused(
            asked,
            "has a colon after the drive, which names an alternate stream or an attribute of a file",
            "Send the path of the file alone.",
        )
    for char in name:
        if char in _FORBIDDEN:
            raise _refused(asked, f"has the character {char} in a name", 'Names cannot have < > " | ? *.')
        kind = unicodedata.category(char) if not char.isprintable() else ""
        if kind == "Cc":
            raise _refused(asked, "has a control character in a name", "Send it without.")
        if kind == "Cs":
            raise _refused(asked, "is not valid text (half of a surrogate pair)", "Send it as UTF-8.")
    if name[-1] in ". ":
        raise _refused(
            asked,
            f"has a name that ends with a {'dot' if name[-1] == '.' else 'blank'}, which Windows drops",
            f"Probably meant: {_shown(name.rstrip('. ')) or 'the directory itself'}.",
        )
    if _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ").upper()):
        raise _refused(asked, f"has the name {_shown(name)}, which is a device of Windows", "Choose another name.")
    if _units(name) > MAX_NAME_UNITS:
        raise _refused(asked, f"has a name of over {MAX_NAME_UNITS} characters", "Choose a shorter name.")


def _check_short_names(path: DrivePath, asked: str, holds: Holds) -> None:
    for index, name in enumerate(path.names):
        if looks_short(name) and not holds(DrivePath(path.drive, path.names[:index]).text, name):
            raise _refused(
                asked,
                f"has the name {_shown(name)}, which looks like the short form of a longer one",
                "Send the long name; Glob shows it.",
            )


def _units(name: str) -> int:
    return len(name.encode("utf-16-le", "surrogatepass")) // 2


def _refused(asked: str, why: str, remedy: str, *, outside: bool = False) -> ToolError:
    code = ErrorCode.PATH_OUTSIDE if outside else ErrorCode.INPUT
    return ToolError(code, f"the path {why}: {_shown(asked)}", remedy)


def _shown(path: str) -> str:
    if not path.isprintable():
        path = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)
    return cut_middle(path, _SHOWN_CHARS)
