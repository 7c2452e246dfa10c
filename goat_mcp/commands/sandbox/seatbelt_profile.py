"""The text of a Seatbelt profile for `Bounds`: what `macos_seatbelt` gives to macOS's sandbox-exec. Pure.

The last rule that matches decides. So the rules go from the outer path to the inner one, in the order of `mounts_of`,
which are bubblewrap's mounts; what a command may never move comes at the end. The profile means the same on a system
that asks rules for one operation (`file-write-unlink`) before rules for a group of them (`file-write*`).

A name that must not be made needs no placeholder: a rule is about a path, whether or not it exists. The kernel sees
paths as they are on the disk, without links, but a name that does not exist yet as the command spells it. Most disks
of Macs ignore case, so such a name is refused in every spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from goat_mcp.commands.sandbox.confinement import Bounds
from goat_mcp.commands.sandbox.mounts import Mount, MountKind, mounts_of
from goat_mcp.commands.sandbox.options import Network

_HOMEBREW = ("/opt/homebrew", "/usr/local")
_OF_HOMEBREW = (
    *("bin", "sbin", "lib", "libexec", "include", "share", "opt", "Cellar", "Frameworks"),
    *("etc/ca-certificates", "etc/gitconfig", "etc/openssl@3"),
)
"""Not its `var` and the rest of `etc`: databases and passwords of services."""
SYSTEM = tuple(
    Path(name)
    for name in (
        *("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/share", "/usr/standalone"),
        # Not /System: all other files can be reached below /System/Volumes, too.
        *("/System/Library", "/System/iOSSupport", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes"),
        *("/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java/JavaVirtualMachines"),
        # Which Xcode is used, and that its licence is accepted: /usr/bin/git and the compilers ask.
        *("/Applications/Xcode.app", "/Library/Preferences/com.apple.dt.Xcode.plist"),
        "/private/var/db/xcode_select_link",
        *("/private/var/select", "/private/var/db/dyld", "/private/var/db/timezone"),
        "/private/var/db/DarwinDirectory/local/recordStore.data",
        *("/private/etc/gitconfig", "/private/etc/group", "/private/etc/hosts", "/private/etc/localtime"),
        *("/private/etc/manpaths", "/private/etc/paths", "/private/etc/paths.d", "/private/etc/passwd"),
        *("/private/etc/protocols", "/private/etc/resolv.conf", "/private/etc/services", "/private/etc/shells"),
        *("/private/etc/ssl", "/private/etc/zshenv"),
        *(f"{prefix}/{name}" for prefix in _HOMEBREW for name in _OF_HOMEBREW),
    )
)
"""What every program may read, if it exists, by its real path."""

_LINKS = ("/etc", "/tmp", "/var", "/dev/stdin", "/dev/stdout", "/dev/stderr")
_READ = "file-read* file-test-existence file-map-executable process-exec*"
"""`access` asks for `file-test-existence` by itself: Node's `existsSync` and git do."""
_WRITE = "file-write* file-link"
"""`file-link` is about the file that gets a second name: under that name a protected file could be changed."""
_MOVE = "file-write-unlink file-write-create"
_ALWAYS = """\
; what a command starts is in the same sandbox; it sees and ends these processes alone
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
; users and groups (shells, git, Python), and the user's temporary folder (Apple's compilers)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.bsd.dirhelper"))
; locks of Python's multiprocessing
(allow ipc-posix-sem)
; the machine and the system, for runtimes and compilers; never kern.procargs2, the variables of other processes
(allow sysctl-read
  (sysctl-name-prefix "hw.")
  (sysctl-name-prefix "kern.os")
  (sysctl-name-prefix "kern.proc.pid.")
  (sysctl-name-prefix "machdep.cpu.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "machdep.ptrauth_enabled")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg"))
; devices, descriptors, and terminals that the command itself has opened
(allow file-read* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* file-write-data (subpath "/dev/fd"))
(allow pseudo-tty)
(allow file-read* file-write-data file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write-data file-ioctl
  (require-all (regex "^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
"""
_FOR_NETWORKS = """\
; proxies and resolvers that the system is set to use
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
(allow sysctl-read (sysctl-name-prefix "net.routetable."))
"""
_WHOLE_NETWORK = """\
; no socket with a path but the resolver's
(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-bind network-inbound (local ip "*:*"))
(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))
; certificates
(allow mach-lookup (global-name "com.apple.trustd.agent"))
"""


def profile_of(bounds: Bounds, system: Sequence[Path] = SYSTEM) -> str:
    """The profile. All paths of `bounds` are as the disk has them. Without a proxy, `domains` is no network at all."""
    mounts = mounts_of(bounds, system)
    lines = [
        "(version 1)",
        "(deny default)",
        _ALWAYS.rstrip("\n"),
        *_network(bounds),
        "; the system, then the workspace and more, from the outer path to the inner one",
        _rule("allow", _READ, map(_tree, system)),
        *(line for mount in mounts for line in _rules(mount)),
        "; what leads to these paths can be passed, and is not moved or replaced",
        _rule("allow", "file-read-metadata file-test-existence", map(_one, _passed(bounds, mounts, system))),
        '(allow file-read* file-test-existence (literal "/"))',
        _rule("deny", _MOVE, map(_one, _pinned(mounts))),
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _network(bounds: Bounds) -> Iterator[str]:
    """Without a rule nothing is reached, 127.0.0.1 neither: macOS has no network that a command has for itself."""
    if bounds.network is Network.ALLOW:
        yield (_FOR_NETWORKS + _WHOLE_NETWORK).rstrip("\n")
    elif bounds.network is Network.DOMAINS and bounds.proxy is not None:
        yield _FOR_NETWORKS.rstrip("\n")
        yield "; the proxy of goat-mcp"
        yield f'(allow network-outbound (remote ip "localhost:{bounds.proxy.port}"))'


def _rules(mount: Mount) -> Iterator[str]:
    tree = [_tree(mount.path)]
    match mount.kind:
        case MountKind.WRITABLE | MountKind.PINNED:
            yield _rule("allow", f"{_READ} {_WRITE}", tree)
        case MountKind.READABLE | MountKind.READ_ONLY:
            yield _rule("allow", _READ, tree)
            yield _rule("deny", _WRITE, tree)
        case MountKind.ABSENT:
            yield _rule("deny", _WRITE, [*tree, f"(regex {quoted(in_any_case(mount.path))})"])
        case MountKind.HIDDEN | MountKind.EMPTY:
            yield _rule("deny", f"{_READ} {_WRITE}", tree)


def _rule(action: str, operations: str, filters: Iterable[str]) -> str:
    return "\n  ".join((f"({action} {operations}", *filters)) + ")"


def _one(path: Path) -> str:
    return f"(literal {quoted(str(path))})"


def _tree(path: Path) -> str:
    """A path and what is below: whether `subpath` alone includes a file, or a name that is not there, is not said."""
    return f"(subpath {quoted(str(path))})" if path.parent == path else f"{_one(path)} (subpath {quoted(str(path))})"


_SEEN = (MountKind.READABLE, MountKind.WRITABLE, MountKind.PINNED)


def _passed(bounds: Bounds, mounts: Sequence[Mount], system: Sequence[Path]) -> list[Path]:
    """Directories that lead to what a command may read, and links: their names and sizes, not what is in them."""
    seen = {*system, *(mount.path for mount in mounts if mount.kind in _SEEN)}
    links = {*map(Path, _LINKS), *(link for link, _ in bounds.links)}
    return sorted({*links, *(above for path in (*seen, *links) for above in path.parents)})


def _pinned(mounts: Sequence[Mount]) -> list[Path]:
    """All mounts below writable paths, with the directories that lead there. A rule holds for a path, so whatever has
    one must stay; a workspace could be moved into another one, too."""
    writable = {mount.path for mount in mounts if mount.kind in (MountKind.WRITABLE, MountKind.PINNED)}
    known: dict[Path, bool] = {}

    def is_inside(path: Path) -> bool:
        if path not in known:
            known[path] = path in writable or (path.parent != path and is_inside(path.parent))
        return known[path]

    return sorted({step for mount in mounts for step in (mount.path, *mount.path.parents) if is_inside(step)})


def quoted(text: str) -> str:
    """A string of the profile's language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_FOLDED_TO = {"k": "\N{KELVIN SIGN}", "s": "\N{LATIN SMALL LETTER LONG S}"}
"""What file systems that ignore case take for an ASCII letter, beside its capital."""
_SPECIAL = frozenset(r".^$*+?()[]{}|\\")


def in_any_case(path: Path) -> str:
    """A regular expression for the path and what is below, its last name in any case. The others are as on the disk."""
    above = "" if path.parent.parent == path.parent else str(path.parent)
    return f"^{''.join(map(_literally, above))}/{''.join(map(_any_case, path.name))}(/|$)"


def _literally(letter: str) -> str:
    return f"\\{letter}" if letter in _SPECIAL else letter


def _any_case(letter: str) -> str:
    if not (letter.isascii() and letter.isalpha()):
        return _literally(letter)
    cases = [letter.lower(), letter.upper(), *_FOLDED_TO.get(letter.lower(), "")]
    return f"({'|'.join(cases)})"
