"""What the system under us offers. Asked once, by feature and not by name.

Code asks for a feature and says what it does without. Besides this module and `core/posix.py` only the implementations
behind a feature read `sys.platform`: files named `linux_*`, `macos_*` and `windows_*`. What takes a call to the kernel
to find out (openat2, Landlock, user namespaces) is asked where it is used. What users should know of has a row in
`gateway/status/system_features.py`.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final, Literal

SystemName = Literal["linux", "macos", "windows"]

_NAMES: Final[dict[str, SystemName]] = {"win32": "windows", "darwin": "macos"}
SYSTEM: Final[SystemName] = _NAMES.get(sys.platform, "linux")
"""For what is a matter of the name alone: where a program keeps its files, which words a user knows."""

HAS_DIRECTORY_DESCRIPTORS: Final = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""A path can be walked name by name, from one open directory to the next."""

HAS_PATH_DESCRIPTORS: Final = hasattr(os, "O_PATH")
"""A file can be held open without the permission to read it."""

HAS_PROC: Final = SYSTEM == "linux" and os.path.isdir("/proc/self/fd")  # noqa: PTH112  # this module is on every start
"""The kernel tells about processes and open files below `/proc`."""

HAS_GETPATH: Final = SYSTEM == "macos"
"""The same by a call, F_GETPATH: where an open file is, as it is spelled on disk."""

HAS_PIDFD: Final = hasattr(os, "pidfd_open")
"""A process can be held, so that its number cannot come to mean another one."""

HAS_MEMFD: Final = hasattr(os, "memfd_create")
"""A file can be in memory alone and be handed to a child."""

HAS_FILE_MODES: Final = hasattr(os, "geteuid")
"""Files have an owner and mode bits."""

HAS_ACCESS_LISTS: Final = SYSTEM == "windows"
"""Who may use a file is in a list of its own, which `state/windows_files.py` reads and writes."""

HAS_CHANGE_TIMES: Final = SYSTEM != "windows"
"""A file has a time that each change of it sets, and that nobody can set back; Windows has the time of its creation."""

HAS_EXTENDED_ATTRIBUTES: Final = hasattr(os, "listxattr")

HAS_COPYFILE: Final = SYSTEM == "macos"
"""One call copies extended attributes and access lists."""

HAS_PROCESS_GROUPS: Final = hasattr(os, "killpg")
"""A command and what it starts can be ended together by one signal."""

HAS_JOB_OBJECTS: Final = SYSTEM == "windows"
"""The same on Windows: processes in a job end when its last handle closes."""

HAS_SIGNAL_MASKS: Final = SYSTEM != "windows"
"""A signal can be held back and waited for; the event loop can handle signals and pipes by itself."""

HAS_UNIX_SOCKETS: Final = SYSTEM != "windows"
"""Python can listen on a socket that is a file."""

HAS_CPU_TIMERS: Final = hasattr(signal, "setitimer")
"""A process can be interrupted after so much time of the processor."""

HAS_NAMESPACES: Final = SYSTEM == "linux"
"""A program can have processes, mounts and a network of its own, if the system lets this user: bubblewrap, Landlock."""

HAS_SEATBELT: Final = SYSTEM == "macos"
"""A program can be kept to a profile that names what it may do: sandbox-exec."""

HAS_SIGNAL_SENDERS: Final = HAS_PROC and hasattr(signal, "sigtimedwait")
"""The kernel names the sender of a signal, and what that process is can be looked up."""

HAS_CGROUPS: Final = HAS_PROC
"""The kernel can limit the processes of a command also if root runs it."""

HAS_MEMORY_LIMITS: Final = SYSTEM == "linux"
"""The kernel holds a process to RLIMIT_AS and RLIMIT_DATA. macOS has these names, and no promise."""


def _is_in_wsl() -> bool:
    """A container in Docker Desktop has the same kernel, and none of the rest."""
    if SYSTEM != "linux" or not ("WSL_DISTRO_NAME" in os.environ or os.path.isdir("/run/WSL")):  # noqa: PTH112  # as above
        return False
    try:
        with open("/proc/sys/kernel/osrelease", "rb") as file:  # noqa: PTH123  # as above
            return b"microsoft" in file.read().lower()
    except OSError:
        return False


IN_WSL: Final = _is_in_wsl()
"""There is a Windows around this Linux: its drives are mounted, and hosts on it can start us through `wsl.exe`."""
