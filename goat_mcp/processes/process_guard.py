"""The guard: one tiny process that ends our children's process groups when this process is gone, however it died.

Knows process groups and one environment marker; starting and stopping single commands lives in `running_command`.
"""

from __future__ import annotations

import logging
import os
import secrets
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

from goat_mcp.core import platform
from goat_mcp.processes.process_table import environment_contains
from goat_mcp.processes.windows_job import CHILD_FLAGS, CREATE_SUSPENDED, JobLimits, Jobs

MARKER_VARIABLE = "GOAT_MCP_CALL"
"""Environment variable that every guarded command carries: `<guard id>.<call>`.

It finds what left the process group (`setsid`) and still has the environment it was started with.
"""

JUST_RAN_S = 2.0
"""For so long after its end a signal may still have come from a command: a busy machine is late to look at it."""

_GRACE_S = 1

# Reads "+ GROUP", "- GROUP" and "= COMMAND" lines until the pipe closes, which the kernel does for us even after
# `kill -9`. No path and no name of ours is in its arguments, and it ignores TERM: `pkill -f` must not end it before us.
_SCRIPT = """
trap '' TERM INT HUP
groups=' '
last=
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    =) last=$group ;;
    -) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
  esac
done
FIND
left=$(ours)
remember
if [ "$groups" != ' ' ] || [ -n "$left" ]; then
  for group in $groups; do kill -s TERM -- "-$group"; done
  for one in $left; do kill -s TERM "$one"; done
  sleep "$grace"
  for round in 1 2 3; do
    for group in $groups; do kill -s KILL -- "-$group"; done
    for one in $(ours; remembered); do kill -s KILL "$one"; done
  done
fi
[ -z "$last" ] || eval "$(printf %b "$last")"
"""

_FIND_IN_PROC = """
ours() {
  for file in $(grep -lsF "$variable=$id." /proc/[0-9]*/environ 2>/dev/null); do
    file=${file#/proc/}
    echo "${file%/environ}"
  done
}
remember() { :; }
remembered() { :; }
"""

# Descendants of the groups' members in whatever session, and what shows the marker. `ps -E` is how the systems of BSD
# show environments, `ps e` how Linux does. The end of a parent by TERM hides its children: these are remembered with
# the second in which they started, so that a number that another process has got since is left alone.
_FIND_BY_PS = r"""
ours() {
  ps -A -o pid= -o ppid= -o pgid= | awk -v groups="$groups" '
    { parent[$1] = $2; if (index(groups, " " $3 " ")) inside[$1] = 1 }
    END {
      do {
        grown = 0
        for (one in parent) if (!(one in inside) && (parent[one] in inside)) { inside[one] = 1; grown = 1 }
      } while (grown)
      for (one in inside) print one
    }'
  { ps -AEww -o pid= -o command= || ps axeww -o pid= -o command=; } | while read -r one shown; do
    case $shown in *"$variable=$id."*) echo "$one" ;; esac
  done
}
started() { ps -o lstart= -p "$1"; }
remember() { for one in $left; do eval "started_$one=\$(started $one)"; done; }
remembered() {
  for one in $left; do eval "[ \"\$(started $one)\" = \"\$started_$one\" ]" && echo "$one"; done
}
"""


_logger = logging.getLogger(__name__)


class GuardedStart(TypedDict):
    """Keywords for `Popen`, and for what passes them on to it."""

    start_new_session: bool
    creationflags: int


def guarded_start(*, is_watched: bool = True) -> GuardedStart:
    """How a child starts that a guard is to `watch`: in a session of its own, or suspended until it is in its job."""
    if platform.HAS_JOB_OBJECTS:
        return {"start_new_session": False, "creationflags": CHILD_FLAGS | (CREATE_SUSPENDED if is_watched else 0)}
    return {"start_new_session": True, "creationflags": 0}


def system_jobs() -> Jobs:
    """Jobs of this system. Raises `OSError` if it has none."""
    # Workers import this package, and have no packages but what they need: pywin32 and psutil are for who has children.
    from goat_mcp.processes.windows_job_calls import system_calls

    return Jobs(system_calls())


class ProcessGuard:
    """Ends what this process leaves behind (R-STOP-3), for any child that leads its own process group.

    The guard process starts with the first `watch` and costs one pipe write for each later call. It acts on the
    end of its pipe only, so it does not matter which thread started a child. `forget` a group as soon as its last
    member is gone: a number that the system has given to somebody else must not be in the list.

    On Windows there is no guard process: each child is in a job object, and the system ends it.
    """

    def __init__(self) -> None:
        self.id = secrets.token_hex(16)
        self.jobs: Jobs | None = system_jobs() if platform.HAS_JOB_OBJECTS else None
        self._groups: set[int] = set()
        self._commands: set[int] = set()
        self._starting = 0
        self._command_ran_s = float("-inf")
        self._last = ""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def marker(self, call: str) -> str:
        """The value of `MARKER_VARIABLE` for one command. `call` is a word of the caller's choice."""
        return f"{self.id}.{call}"

    def has_marked(self, pid: int) -> bool:
        """Whether a process was started, at whatever remove, by a command of ours."""
        return environment_contains(pid, f"{MARKER_VARIABLE}={self.id}.".encode())

    def start(self) -> None:
        """Start the guard process unless it runs. Call it before a child starts: a child nobody told of yet is
        still found by its marker."""
        with self._lock:
            self._ensure_running()

    @property
    def commands_run(self) -> bool:
        """Whether a user's command, as against a server of ours, runs or did a moment ago.

        What a command did last may come to be looked at when it has ended.
        """
        if self._commands or self._starting:
            return True
        return time.monotonic() - self._command_ran_s < JUST_RAN_S

    @contextmanager
    def starting_command(self) -> Generator[None]:
        """Around the start of a command and its `watch`: it may act before anybody can be told its number."""
        with self._lock:
            self._starting += 1
        try:
            yield
        finally:
            with self._lock:
                self._starting -= 1
                self._command_ran_s = time.monotonic()

    def watch(self, group: int, *, is_command: bool = False, limits: JobLimits | None = None) -> None:
        """End this process group when this process ends.

        In a job, with these limits, a process runs from now on that was started suspended.
        """
        if self.jobs is not None:
            self._put_into_job(self.jobs, group, limits)
        with self._lock:
            self._ensure_running()
            self._groups.add(group)
            if is_command:
                self._commands.add(group)
            self._notify(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """The group is gone; its number may belong to somebody else from now on."""
        if self.jobs is not None:
            self.jobs.forget(group)
        with self._lock:
            if group in self._groups:
                self._groups.discard(group)
                if group in self._commands:
                    self._commands.discard(group)
                    self._command_ran_s = time.monotonic()
                self._notify(f"- {group}\n")

    def run_at_the_end(self, command: Sequence[str]) -> None:
        """Run this when nothing of ours is left, however this process ended: it puts in order what is not a process.
        One command; a later one takes its place."""
        with self._lock:
            text = shlex.join(command).replace("\\", "\\\\").replace("\n", "\\n")
            self._last = f"= {text}\n"
            self._ensure_running()
            self._notify(self._last)

    def close(self) -> None:
        """End everything that is still watched, within about a second, and the guard with it. Does not wait."""
        if self.jobs is not None:
            self.jobs.close()
        with self._lock:
            if self._pipe >= 0:
                os.close(self._pipe)
            self._pipe = -1
            self._groups.clear()
            self._commands.clear()

    def _put_into_job(self, jobs: Jobs, pid: int, limits: JobLimits | None) -> None:
        try:
            jobs.take(pid, limits)
        except OSError as problem:
            # It has ended already, or nobody could end what it starts: it must not run then.
            _logger.warning("process %d could not be put into a job: %s", pid, problem)
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM)

    def _ensure_running(self) -> None:
        if self._pipe >= 0 and self._process is not None and self._process.poll() is None:
            return
        if not platform.HAS_PROCESS_GROUPS or not Path("/bin/sh").exists():
            return
        if self._pipe >= 0:
            os.close(self._pipe)
        read_end, self._pipe = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT.replace("FIND", _FIND_IN_PROC if platform.HAS_PROC else _FIND_BY_PS)],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={
                    "PATH": "/usr/bin:/bin:/usr/local/bin",
                    "variable": MARKER_VARIABLE,
                    "id": self.id,
                    "grace": str(_GRACE_S),
                },
                start_new_session=True,
            )
        finally:
            os.close(read_end)
        for group in self._groups:
            self._notify(f"+ {group}\n")
        if self._last:
            self._notify(self._last)

    def _notify(self, line: str) -> None:
        if self._pipe < 0:
            return
        try:
            os.write(self._pipe, os.fsencode(line))
        except BrokenPipeError:
            # Somebody killed the guard; the next `watch` starts another and tells it all groups.
            os.close(self._pipe)
            self._pipe = -1
