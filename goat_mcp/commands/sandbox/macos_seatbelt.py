"""Confinement by Seatbelt, macOS's sandbox: /usr/bin/sandbox-exec with a profile made from `Bounds`.

`seatbelt_profile` writes the profile. A confined program has no processes, mounts or network of its own; its home
directory and its temporary files are in a private folder, since nothing can be put in the place of another path.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from goat_mcp.commands.sandbox.confinement import (
    Bounds,
    ConfinementName,
    InnerListener,
    Job,
    Launch,
    ProxyAccess,
    trial_problem,
)
from goat_mcp.commands.sandbox.options import Network
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.seatbelt_profile import profile_of
from goat_mcp.commands.sandbox.temporary_folders import PrivateFolder, remove_stale_folders

if sys.platform == "darwin":
    import fcntl

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
"""Never one that is found on PATH."""
_UNREACHABLE = ("SSH_AUTH_SOCK",)
"""Variables that name a socket of the user's, which no sandbox shows."""
_F_GETPATH, _MAX_PATH_BYTES = 50, 1024
_O_EVTONLY = 0x8000


def path_on_disk(path: Path) -> Path:
    """The path as the file system spells it, which is what the kernel compares. A name that is not there stays."""
    if sys.platform != "darwin" or path.parent == path:
        return path
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | _O_EVTONLY)
        try:
            return Path(os.fsdecode(fcntl.fcntl(descriptor, _F_GETPATH, bytes(_MAX_PATH_BYTES)).rstrip(b"\0")))
        finally:
            os.close(descriptor)
    except OSError:
        return path_on_disk(path.parent) / path.name


class Seatbelt:
    """`program` and `on_disk` are for tests: another sandbox-exec, and how a file system spells a path."""

    name: ConfinementName = "seatbelt"
    has_process_namespace = False
    protects_paths = True
    limits = (
        "no PID namespace: names of other processes can be asked for, and a command may leave processes behind",
        "whether a path outside exists can be seen",
        "with network deny and domains, programs of one command cannot use 127.0.0.1 among themselves",
    )

    def __init__(
        self,
        placeholders: Placeholders,
        *,
        program: str = SANDBOX_EXEC,
        on_disk: Callable[[Path], Path] = path_on_disk,
    ) -> None:
        self._placeholders = placeholders
        self._program = program
        self._on_disk = on_disk

    def missing(self) -> str:
        """Why Seatbelt cannot be used; empty if it can."""
        if not os.path.isfile(self._program):  # noqa: PTH113  # `Path` raises for what may not be looked at
            return f"this system has no {self._program}"
        remove_stale_folders()
        try:
            with _Trial.prepared() as trial:
                return self._tried(trial)
        except (OSError, subprocess.SubprocessError) as problem:
            return f"Seatbelt cannot be started: {problem}"

    def _tried(self, trial: _Trial) -> str:
        launch = self.launch(trial.job)
        try:
            problem = trial_problem(launch, "Seatbelt")
        finally:
            launch.finish()
        if problem:
            return problem
        failed = "; ".join(trial.failures())
        return f"Seatbelt does not do here what it should: {failed}" if failed else ""

    def launch(self, job: Job) -> Launch:
        """How to start `job`: same process, group, descriptors. Raises `OSError` if a writable path cannot be used."""
        for path in job.bounds.writable:
            path.stat()  # a rule about a path that is gone would say nothing
        folder = PrivateFolder()
        try:
            private = Path(os.path.realpath(folder.path))
            home, own = private / "home", private / "tmp"
            home.mkdir(mode=0o700)
            own.mkdir(mode=0o700)
            temporary = job.bounds.temporary or own
            bounds = _on_disk(job.bounds, self._on_disk, (temporary, home))
            profile = private / "profile"
            profile.write_bytes(os.fsencode(profile_of(bounds)))
            taken = self._placeholders.acquire((), bounds.watched)
        except BaseException:
            folder.remove()
            raise

        def finish() -> tuple[str, ...]:
            folder.remove()
            return self._placeholders.release(taken, bounds.watched)

        environment = {**job.environment, **job.marker, "TMPDIR": str(temporary)}
        if bounds.home is not None and not _is_visible(bounds.home, bounds):
            environment["HOME"] = str(home)
        if bounds.proxy is not None:
            environment.update(bounds.proxy.environment)
        for name in _UNREACHABLE:
            environment.pop(name, None)
        return Launch(
            # In a file: everybody on the machine can read a program's arguments, and they have a limit.
            arguments=(self._program, "-f", str(profile), "--", *job.arguments),
            environment=environment,
            directory=os.fspath(job.directory),
            pass_fds=job.pass_fds,
            finish=finish,
        )


def _on_disk(bounds: Bounds, spelled: Callable[[Path], Path], more_writable: Iterable[Path]) -> Bounds:
    def all_of(paths: Iterable[Path]) -> tuple[Path, ...]:
        return tuple(map(spelled, paths))

    return replace(
        bounds,
        writable=all_of((*bounds.writable, *more_writable)),
        readable=all_of(bounds.readable),
        pinned=all_of(bounds.pinned),
        read_only=all_of(bounds.read_only),
        absent=all_of(bounds.absent),
        hidden=all_of(bounds.hidden),
        home=None if bounds.home is None else spelled(bounds.home),
    )


def _is_visible(path: Path, bounds: Bounds) -> bool:
    return any(path.is_relative_to(one) for one in (*bounds.writable, *bounds.readable))


_PROTECTED = 'it"s (kept) \\ and\nsafe'
"""The name of the trial's protected file holds all that a profile has to quote."""
_TRIAL = """
cd "$1" || exit 8
echo inside >inside
cat secret ../outside >seen
echo bad >../outside; echo bad >../new
echo bad >"kept/$2"; mv "kept/$2" moved; mv kept moved; rm -f "kept/$2"
echo bad >"KEPT/$2"; echo bad >"kept/${2%safe}SAFE"; cat SECRET >>seen
echo bad >"/System/Volumes/Data$PWD/kept/$2"; cat "/System/Volumes/Data$PWD/secret" >>seen
ln "kept/$2" link && echo bad >link
ln ../outside other && echo bad >other
mkdir absent; mkdir ABSENT
kill -KILL "$3" && echo bad >ended
(exec 3<>"/dev/tcp/127.0.0.1/$4")
(exec 3<>"/dev/tcp/127.0.0.1/$5")
exit 0
"""


@dataclass(frozen=True)
class _Trial:
    """A program that tries what it may and what it may not. What came of it is looked at from outside."""

    folder: Path
    victim: subprocess.Popen[bytes]
    proxy: socket.socket
    other: socket.socket

    @classmethod
    @contextmanager
    def prepared(cls) -> Generator[_Trial]:
        """Its files, a process that it must not end, and two ports of which it may reach the first."""
        folder = PrivateFolder()
        try:
            place = Path(os.path.realpath(folder.path))
            (place / "ws" / "kept").mkdir(parents=True)
            for name in ("outside", "ws/secret", f"ws/kept/{_PROTECTED}"):
                (place / name).write_text("good\n")
            victim = subprocess.Popen(
                ("/bin/sleep", "60"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                with _listening() as proxy, _listening() as other:
                    yield cls(place, victim, proxy, other)
            finally:
                victim.kill()
                victim.wait()
        finally:
            folder.remove()

    @property
    def job(self) -> Job:
        ws = self.folder / "ws"
        bounds = Bounds(
            writable=(ws,),
            read_only=(ws / "kept" / _PROTECTED,),
            absent=(ws / "absent",),
            hidden=(ws / "secret",),
            network=Network.DOMAINS,
            proxy=ProxyAccess(port=_port(self.proxy), environment={}, listen_inside=_no_inner_network),
        )
        ports = (str(_port(self.proxy)), str(_port(self.other)))
        return Job(
            arguments=("/bin/bash", "-c", _TRIAL, "bash", str(ws), _PROTECTED, str(self.victim.pid), *ports),
            directory=Path("/"),
            environment={"PATH": "/usr/bin:/bin"},
            bounds=bounds,
        )

    def failures(self) -> Iterator[str]:
        """What was possible and must not be, or the other way round."""
        ws = self.folder / "ws"
        if _text(ws / "inside") != "inside\n":
            yield "a file in the workspace cannot be written"
        if _text(ws / "seen"):
            yield "a file outside, or a hidden one, could be read"
        if _text(self.folder / "outside") != "good\n" or (self.folder / "new").exists():
            yield "a file outside could be written"
        if _text(ws / "kept" / _PROTECTED) != "good\n" or (ws / "moved").exists():
            yield "a protected file could be changed"
        if any(name.lower() == "absent" for name in os.listdir(ws)):  # noqa: PTH208  # names are all it needs
            yield "a protected name could be made"
        if self.victim.poll() is not None or (ws / "ended").exists():
            yield "a process outside could be ended"
        if not _was_reached(self.proxy):
            yield "the proxy could not be reached"
        if _was_reached(self.other):
            yield "another port than the proxy's could be reached"


@contextmanager
def _listening() -> Generator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        yield listener


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _no_inner_network() -> InnerListener:
    raise OSError("macOS has no network of its own for a sandbox")
