"""The `goat-mcp` program. `goat-mcp serve` over stdio is handed to the resident process, which has everything imported
and forks; all other commands run here, and so does `serve` if anything is unusual (design/0029).

This module is outside `goat_mcp` and imports C modules only: what it costs, every start of every window costs.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import NoReturn

TIMEOUT_S = 0.2
"""How long the resident process may take until it has a session ready."""
START_AGAIN_S = 30.0
"""A resident process that did not come up is started again after so long."""
SWITCH = "GOAT_MCP_RESIDENT"
STARTED = "_GOAT_MCP_STARTED"
"""How this server was started, for `goat-mcp status`: `resident`, or why not."""
HANDOVER = "_GOAT_MCP_HANDOVER"
"""Set while a server replaces itself in place: that one already has its process."""

_COMPLETION = "_GOAT_MCP_COMPLETE"
_OFF = ("0", "false", "no", "off")
_SHAPE_START = (
    *("LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"),
    *("LOCPATH", "LD_AUDIT", "LD_BIND_NOW", "LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES"),
    *("OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "PYTHON_CPU_COUNT", "PYTHON_GIL"),
    *("OTEL_PROPAGATORS", "OTEL_PYTHON_CONTEXT", "OTEL_PYTHON_TRACER_PROVIDER", "PYDANTIC_DISABLE_PLUGINS"),
)
"""These matter while Python and its libraries start, as do those that `shapes_start` knows by their beginning. A
resident process serves only those who have the same. Whole names: LANGSMITH_API_KEY must not be among them."""
_PASSED_ON = ("HOME", "PATH", "XDG_RUNTIME_DIR")
_COMMAND_MARK = "GOAT_MCP_CALL"
_DESCRIPTOR_PATHS = ("/dev/fd/", "/proc/self/", "/dev/std")
_SAME_STATUS = ("Uid", "Gid", "Groups", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
SO_PEERPIDFD = 77
"""Linux 6.5"""
_NO_SUCH_OPTION = 92
_TERM = 15
_ENDED_UNSEEN = 70


class NotResident(Exception):
    """Why this process serves by itself."""


def main() -> None:
    """Run the command line."""
    if is_stdio_server(sys.argv[1:]):
        try:
            server, pid = hand_over()
        except NotResident as why:
            os.environ[STARTED] = str(why)
        except Exception as problem:  # whatever it is, the client is served
            os.environ[STARTED] = f"the resident process cannot be used: {problem or type(problem).__name__}"
        else:
            _stand_in_for(server, pid)  # whatever happens here: the client has its server
    from goat_mcp.cli.main import main as run

    run()


def is_stdio_server(words: list[str]) -> bool:
    """Whether this command line serves MCP to a program over pipes, in a process that it has not got yet."""
    if HANDOVER in os.environ or _COMPLETION in os.environ or words[:1] not in ([], ["serve"]):
        return False
    if any(word.partition("=")[0] in ("--http", "--help", "-h") for word in words):
        return False
    try:
        return not os.isatty(0)
    except OSError:
        return False


def hand_over() -> "tuple[socket, int]":
    """Have the resident process serve our client. Returns the connection on which it reports the end, and the server.

    Raises `NotResident` or `OSError` if it cannot; then nothing was read from our standard input.
    """
    check_possible()
    own = _status("self")
    if own.get("NoNewPrivs") != "0":
        raise NotResident("it was started with no_new_privs, and may be confined in a way that nobody can see")
    folder = runtime_folder()
    name = build_name()
    from _socket import AF_UNIX, SOCK_STREAM, socket

    server = socket(AF_UNIX, SOCK_STREAM)
    server.settimeout(TIMEOUT_S)
    try:
        connect(server, folder, name)
    except (FileNotFoundError, ConnectionRefusedError):
        raise NotResident(start_resident(folder, name)) from None
    except (TimeoutError, BlockingIOError):
        raise NotResident("the resident process is too busy") from None
    check_peer(server, own)
    try:
        pid = _ask(server)
        server.send(b"g")
        server.settimeout(None)  # it serves from now on, or says that it does not
        if (answer := server.recv(1)) != b"s":
            raise NotResident(f"the resident process did not begin: {_rest(server, answer)}")
    except TimeoutError:
        raise NotResident(f"the resident process did not answer within {TIMEOUT_S * 1000:.0f} ms") from None
    return server, pid


def check_possible() -> None:
    """Raises `NotResident` if this process, with its arguments and environment, is to serve by itself."""
    if "--no-resident" in sys.argv or os.environ.get(SWITCH, "").lower() in _OFF:
        raise NotResident(f"switched off (--no-resident, {SWITCH}=0)")
    if sys.platform != "linux":
        raise NotResident("only Linux has a resident process")
    for number in (0, 1, 2):
        os.fstat(number)  # what is opened next would take the place of one that is closed
    given = [*sys.argv[1:], *(value for name, value in os.environ.items() if name.startswith("GOAT_MCP_"))]
    if any(path in text for text in given for path in _DESCRIPTOR_PATHS):
        raise NotResident("a setting names an open file of this process")
    if _COMMAND_MARK in os.environ:
        raise NotResident("it was started by a command of goat-mcp, which ends all that it starts")
    if int(_text("/proc/self/personality"), 16):  # nobody else may read it
        raise NotResident("its personality is another than usual (setarch)")
    if not all(path.startswith("/") for path in (os.environ.get("PYTHONPATH") or "/").split(":")):
        raise NotResident("PYTHONPATH depends on the current folder")


def check_peer(server: "socket", own: dict[str, str]) -> None:
    """Our environment is for nobody who may do less than we, such as a program in a sandbox that made this socket."""
    pid, uid = peer_of(server)
    if pid == 0:
        raise NotResident("the resident process is outside the pid namespace of the host's process")
    if uid != os.geteuid():
        raise NotResident("another user listens where the resident process should")
    theirs = _status(str(pid))
    for name in _SAME_STATUS:
        if theirs.get(name) != own.get(name):
            raise NotResident(f"{name} of the process that listens where the resident process should is another")
    if len(theirs["NSpid"].split()) != len(own["NSpid"].split()):
        raise NotResident("a process of another PID namespace listens where the resident process should")
    # Who listened may have ended, with the socket left to others. Then we have looked at whoever got its number.
    pidfd = peer_pidfd(server)
    if pidfd is not None:
        import select

        is_over = bool(select.select([pidfd], [], [], 0)[0])
        os.close(pidfd)
        if is_over:
            raise NotResident("who listened where the resident process should has ended")


def peer_of(connection: "socket") -> tuple[int, int]:
    """The process and the user at the other end."""
    from _socket import SO_PEERCRED, SOL_SOCKET

    credentials = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], sys.byteorder), int.from_bytes(credentials[4:8], sys.byteorder)


def peer_pidfd(connection: "socket") -> int | None:
    """A descriptor of the process at the other end, which `peer_of` has only the number of; None on an older kernel.
    Raises `OSError` if it is gone."""
    from _socket import SOL_SOCKET

    try:
        pidfd = connection.getsockopt(SOL_SOCKET, SO_PEERPIDFD)
    except OSError as problem:
        if problem.errno == _NO_SUCH_OPTION:
            return None
        raise
    os.set_inheritable(pidfd, False)
    return pidfd


def _status(process: str) -> dict[str, str]:
    lines = _text(f"/proc/{process}/status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _text(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 14).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def connect(server: "socket", folder: str, name: str) -> None:
    """Connect through the folder's descriptor: an address has room for 107 bytes only."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        server.connect(f"/proc/self/fd/{descriptor}/{name}.sock")
    finally:
        os.close(descriptor)


def _ask(server: "socket") -> int:
    """Hand over our streams and folder; returns the process that will serve, once it is ready."""
    from _socket import SCM_RIGHTS, SOL_SOCKET

    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    umask = os.umask(0o77)
    os.umask(umask)
    words = [os.fsencode(word) for word in sys.orig_argv]
    variables = [name + b"=" + value for name, value in os.environb.items() if name]
    body = b"\0".join([b"%o" % umask, b"%d" % len(sys.argv), b"%d" % len(words), os.fsencode(sys.path[0])])
    body = b"\0".join([body, *map(os.fsencode, sys.argv), *words, *variables])
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, folder))
    try:
        server.sendmsg([len(body).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
        server.sendall(body)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was refused before it was read; the answer says why
    finally:
        os.close(folder)
    answer = server.recv(5)
    if not answer:
        raise NotResident("the resident process has ended")
    if answer[:1] == b"-":
        raise NotResident(_rest(server, answer))
    return int.from_bytes(answer[1:], "big")


def _rest(server: "socket", answer: bytes) -> str:
    """A line; behind it may be the end of the fork."""
    while answer[:1] == b"-" and b"\n" not in answer and (more := server.recv(4096)):
        answer += more
    return answer[1:].partition(b"\n")[0].decode("utf-8", "replace")


def _stand_in_for(server: "socket", pid: int) -> "NoReturn":
    """Be for the host what the forked process is: pass its signals on, end as that does."""
    import _thread

    if TYPE_CHECKING:
        import signal
    else:
        import _signal as signal  # without the enumerations, which take 4 ms

    def pass_on() -> None:
        # By waiting, not by handlers: one that comes just before `recv` would be noticed when that returns.
        while True:
            came = signal.sigwaitinfo(ours)
            number = came.si_signo
            if number == _TERM and _blocks_term(pid):
                # The server is told who sent it: its own commands do not end it (`processes/stop_signals`).
                server.send(came.si_pid.to_bytes(4, "big"))
                continue
            _send_signal(pid, signal.SIGSTOP if number == signal.SIGTSTP else number)
            if number == signal.SIGTSTP:
                os.kill(os.getpid(), signal.SIGSTOP)

    _become_undumpable()
    passed_on = (1, 2, 3, 10, 12, _TERM, 18, 20)  # HUP INT QUIT USR1 USR2 TERM CONT TSTP
    ours = [number for number in passed_on if signal.getsignal(number) is not signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, ours)
    _thread.start_new_thread(pass_on, ())
    os.closerange(0, 2)  # the host sees it at once if the server closes them
    code = _exit_code(server)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (-code,))
        signal.raise_signal(-code)
    os._exit(code)


def _exit_code(server: "socket") -> int:
    """The resident process sends it when the server has ended. If that was killed, the server's own word remains: a
    server that is about to exit with status 0 says so."""
    ends_well = False
    try:
        while word := server.recv(1):
            if word == b"x":
                return int.from_bytes(server.recv(4), "big", signed=True)
            ends_well = True
    except ConnectionResetError:
        ends_well = False
    if ends_well:
        return 0
    os.write(2, b"goat-mcp: the resident process has ended, and the server with it\n")
    return _ENDED_UNSEEN


def _send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _blocks_term(pid: int) -> bool:
    """Whether the server serves already. Before that, SIGTERM ends it at once."""
    try:
        return bool(int(_status(str(pid))["SigBlk"], 16) >> (_TERM - 1) & 1)
    except (OSError, KeyError):
        return False


def _become_undumpable() -> None:
    """Our environment holds the host's secrets, too: nobody of the same user reads it from `/proc` (R-PROC-7)."""
    try:
        import _ctypes
    except ImportError:  # a Python that was built without it
        return
    this_process = _ctypes.dlopen(None, 0)  # pyright: ignore[reportArgumentType]  # its stub knows files only
    _ctypes.call_function(_ctypes.dlsym(this_process, "prctl"), (4, 0, 0, 0, 0))


def start_resident(folder: str, name: str) -> str:
    """Start the resident process in the background, unless somebody just does. Returns what to say about it."""
    import fcntl

    lock = os.open(f"{folder}/{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            tried = os.fstat(lock)
            if not os.path.samestat(tried, os.stat(f"{folder}/{name}.lock")):
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):  # its holder may have removed it just now
            return "the resident process is just starting"
        if tried.st_size and time.time() - tried.st_mtime < START_AGAIN_S:
            return "the resident process did not come up when it was last started"
        os.pwrite(lock, b"started\n", 0)
        os.utime(lock)
        first = os.fork()
        if first == 0:
            _exec_detached(folder, name, lock)
        os.waitpid(first, 0)
        return "the resident process was not running; it is started now"
    finally:
        os.close(lock)


def _exec_detached(folder: str, name: str, lock: int) -> None:
    """In a forked process: become the resident process, which is no child of ours and has nothing open of ours."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.dup2(lock, 3)
        os.set_inheritable(3, True)  # if it was 3 before
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 3:
                _close(number)
        os.chdir("/")
        os.umask(0o22)  # the byte code that it writes is everybody's
        # Python found UTF-8 mode in a locale that it has since replaced in our environment.
        utf8 = f"-Xutf8={sys.flags.utf8_mode}"
        words = [
            sys.executable,
            *_python_options(),
            utf8,
            "-m",
            "goat_mcp.cli.resident.linux_fork_server",
            folder,
            name,
        ]
        os.execve(sys.executable, words, resident_environment())
    finally:
        os._exit(1)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        return  # it was that of the list


def _python_options() -> list[str]:
    """What Python itself was started with, before the program: several letters may be one word (`-Im goat_mcp`)."""
    options: list[str] = []
    words = iter(sys.orig_argv[1:])
    for word in words:
        if not word.startswith("-"):
            break
        letters = word[1:]
        ends = [at for at, letter in enumerate(letters) if letter in "mcWX"]
        if letters.startswith("-"):
            options += [word, next(words, "")]
        elif not ends:
            options.append(word)
        elif letters[ends[0]] in "mc":
            options += [f"-{letters[: ends[0]]}"] if ends[0] else []
            break
        else:
            options.append(word if letters[ends[0] + 1 :] else word + next(words, ""))
    return options


def resident_environment() -> dict[str, str]:
    """Nothing of one host's secrets: what Python needs to start as it did here."""
    return {name: value for name, value in os.environ.items() if name in _PASSED_ON or shapes_start(name)}


def shapes_start(name: str) -> bool:
    """Whether a variable matters before the first line of ours runs."""
    is_pythons = name.startswith("PYTHON") and "_" not in name
    return is_pythons or name in _SHAPE_START or name.startswith("MALLOC_")


def runtime_folder() -> str:
    """Where sockets of this user are; it is made if it is missing. Raises `NotResident` if others can use it."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base.startswith("/") and _is_private(base):
        folder = f"{base}/goat-mcp"
    else:
        home = os.environ.get("HOME") or _home_on_record()
        if not home.startswith("/"):
            raise NotResident(f"HOME is no absolute path: {home}")
        if os.stat(home).st_uid != os.geteuid():  # as with `sudo`: a folder of root's would be in its owner's way
            raise NotResident(f"HOME belongs to another user: {home}")
        folder = f"{home}/.cache/goat-mcp/run"
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
    except OSError as problem:
        raise NotResident(f"{folder} cannot be used: {problem.strerror}") from None
    if not _is_private(folder):
        raise NotResident(f"{folder} is not this user's alone (mode 0700)")
    return folder


def _home_on_record() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


def _is_private(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and found.st_mode & 0o170077 == 0o040000


def build_name() -> str:
    """Changes with any file of the package or installed package, with Python, and with what shapes its start."""
    import _imp

    home = os.path.dirname(os.path.abspath(__file__))
    parts = [
        *(sys.version, sys.executable, str(sys.flags), sys.getfilesystemencoding(), "\0".join(sys.path[1:])),
        *(word for word in _python_options() if not word.startswith("-Xutf8")),
        *(os.uname().nodename, str(os.geteuid()), str(os.getegid())),
        *sorted(f"{name}={value}" for name, value in os.environ.items() if shapes_start(name)),
        _seen(__file__),
        # A package that comes or goes changes its folder; what comes and goes in a checkout is none.
        *(_seen(path) for path in sys.path[1:] if path != home or not os.path.exists(f"{home}/pyproject.toml")),
        *sorted(files_seen(f"{home}/goat_mcp")),
    ]
    text = "\n".join(parts).encode("utf-8", "surrogateescape")
    return "".join(_imp.source_hash(key, text).hex() for key in (1, 2))


def files_seen(folder: str) -> list[str]:
    """Each file with what a change of it changes."""
    found: list[str] = []
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        folders.append(entry.path)
                else:
                    found.append(_seen(entry.path, entry.stat(follow_symlinks=False)))
    return found


def _seen(path: str, found: os.stat_result | None = None) -> str:
    try:
        found = found or os.stat(path)
    except OSError:
        return f"{path} -"
    return f"{path} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
