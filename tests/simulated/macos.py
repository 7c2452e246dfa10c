"""A Python that takes this Linux for a Mac: python -m tests.simulated.macos -m pytest tests/files

The words are run by a Python of its own (a virtual environment in a temporary folder), and so is each Python that is
started by it. `mac_process.py` is the first that each of them imports. In all of them, and in what they start:

- What only Linux has is gone from os, signal, select, socket, time, resource and fcntl. The event loop polls: it finds
  no epoll.
- `sys.platform` reads `darwin`, and `os.uname` says so: for goat-mcp, its tests, and platformdirs.
- `/proc` cannot be opened or seen by goat-mcp and its tests.
- openat2, Landlock, seccomp, pidfds and memfds are refused by the kernel with ENOSYS: a filter, so that it holds in
  every child.
- Linux's own programs, `bwrap` among them, are not on the PATH.
- `fcntl` knows F_GETPATH, and refuses a limit of the address space.

What is not simulated: the standard library, psutil and other libraries go on as on Linux (psutil reads `/proc`). bash
and ps are those of Linux. There is no kqueue, no `sandbox-exec`, no Keychain, and there are no extended attributes.
File names are compared byte by byte but in tests that bring a file system of their own. What is started by its full
path is there.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import sys
import tempfile
from pathlib import Path

_LINUX_PROGRAMS = frozenset(
    {"bwrap", "unshare", "nsenter", "setpriv", "systemd-run", "systemctl", "apt-get", "apt", "ldd", "getcap", "strace"}
)
_START = Path(__file__).with_name("mac_process.py")

_ENOSYS = 38
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_FILTER = 2
_MACHINES = {
    # its number for seccomp, and those of seccomp, prctl and memfd_create; the others are the same everywhere
    "x86_64": (0xC000003E, 317, 157, 319),
    "aarch64": (0xC00000B7, 277, 167, 279),
}
_REFUSED = (437, 444, 445, 446, 424, 434, 438)
"""openat2, the three of Landlock, pidfd_send_signal, pidfd_open, pidfd_getfd."""


def main(words: list[str]) -> int:
    """Ends as the Python does that runs the words."""
    if not words:
        print(__doc__)
        return 2
    if why_not := why_impossible():
        print(f"cannot simulate macOS: {why_not}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="goat-mac-"))
    child = os.fork()
    if child == 0:
        python = make_python(folder / "python")
        environment = {**os.environ, "PATH": str(make_path(folder / "programs"))}
        refuse_linux_calls()
        os.execve(python, [str(python), *words], environment)
    _, status = os.waitpid(child, 0)
    shutil.rmtree(folder, ignore_errors=True)
    return abs(os.waitstatus_to_exitcode(status))


def why_impossible() -> str:
    """Empty if this machine can do it."""
    if not sys.platform.startswith("linux"):
        return "it is made for Linux"
    if os.uname().machine not in _MACHINES:
        return f"the numbers of the system calls of {os.uname().machine} are not known here"
    return ""


def make_python(folder: Path) -> Path:
    """A virtual environment that has the packages of this one and takes itself for a Mac. Returns its Python."""
    programs, packages = folder / "bin", folder / "lib" / _version() / "site-packages"
    programs.mkdir(parents=True)
    packages.mkdir(parents=True)
    own = Path(sys.executable)
    for program in own.parent.iterdir():
        if program.is_file() and not program.name.startswith("python"):
            _take_over(program, programs)
    for name in ("python", "python3", _version()):
        (programs / name).symlink_to(Path(sys.base_prefix, "bin", _version()))
    home = Path(sys.base_prefix, "bin")
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    (packages / "mac_process.py").write_text(_START.read_text())
    others = str(own.parents[1] / "lib" / _version() / "site-packages")
    (packages / "simulated.pth").write_text(
        f"import mac_process; mac_process.enter()\nimport site; site.addsitedir({others!r})\n"
    )
    return programs / "python"


def _version() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def _take_over(program: Path, programs: Path) -> None:
    """A script names its Python in its first line."""
    with program.open("rb") as file:
        is_script = file.read(2) == b"#!"
    copy = programs / program.name
    if is_script:
        text = program.read_text()
        copy.write_text(text.replace(sys.executable, str(programs / "python"), 1))
        copy.chmod(0o755)
    else:
        copy.symlink_to(program)


def make_path(folder: Path) -> Path:
    """A folder with all programs of the PATH but those that only Linux has."""
    folder.mkdir()
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in os.listdir(place) if os.path.isdir(place) else ():  # noqa: PTH112, PTH208  # thousands of names
            if name not in _LINUX_PROGRAMS and not os.path.lexists(folder / name):
                os.symlink(os.path.join(place, name), folder / name)  # noqa: PTH118, PTH211
    return folder


def refuse_linux_calls() -> None:
    """From now on the kernel answers ENOSYS to what only Linux has: here, and in what is started from here."""
    number, seccomp, prctl, memfd_create = _MACHINES[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    program = _filter(number, prctl, (*_REFUSED, seccomp, memfd_create))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    argument = Program(len(program) // 8, program)
    if os.geteuid() != 0:  # the kernel wants it of everybody else
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(argument), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _filter(machine: int, prctl: int, refused: tuple[int, ...]) -> bytes:
    """Instructions of the kernel's filter machine: (code, steps if true, steps if not, value)."""
    load, equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | _ENOSYS
    lines = [(load, 0, 0, 4), (equal, 1, 0, machine), (answer, 0, 0, allow), (load, 0, 0, 0)]
    for number in refused:
        lines += [(equal, 0, 1, number), (answer, 0, 0, refuse)]
    lines += [(equal, 0, 3, prctl), (load, 0, 0, 16), (equal, 0, 1, _PR_SET_SECCOMP), (answer, 0, 0, refuse)]
    lines += [(answer, 0, 0, allow)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
