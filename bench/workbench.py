"""What every subject needs: a throw-away folder, a clean environment, commands that start servers, and progress."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.corpus import Corpus, make_corpus

BENCH = Path(__file__).parent
SERVERS = BENCH / "servers"
FASTMCP_PYTHON = BENCH / ".venv" / "bin" / "python"
PROGRESS_EVERY_S = 1.0
LISTEN_TIMEOUT_S = 40.0
CORPUS_FILES = 52_000
CORPUS_IGNORED_FILES = 2_000
RESIDENT = "GOAT_MCP_RESIDENT"
# PYTHONDONTWRITEBYTECODE would have us measure the compiler: an installed package is compiled.
_CONFIGURING = ("GOAT_MCP_", "XDG_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


class CannotMeasure(Exception):
    """A subject's surroundings are not there; the message says which."""


@dataclass
class Workbench:
    """One run's folder and settings. `quick` asks for fewer rounds."""

    root: Path
    quick: bool
    kept_corpus: Path | None = None
    _corpus: Corpus | None = None
    _said_at: float = field(default=0.0)

    def rounds(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    @property
    def env(self) -> dict[str, str]:
        """The user's environment without anything that would configure us. Every server is a process of its own."""
        home = self.folder("home")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_CONFIGURING)}
        ours = {"HOME": str(home), "GOAT_MCP_STATE_DIR": str(self.folder("state")), RESIDENT: "0"}
        return kept | ours | {"FASTMCP_LOG_LEVEL": "ERROR"}

    @property
    def resident_env(self) -> dict[str, str]:
        """The same with the resident process, as users have it. Its socket is in a folder of ours."""
        runtime = self.folder("runtime")
        runtime.chmod(0o700)
        kept = {name: value for name, value in self.env.items() if name != RESIDENT}
        return kept | {"XDG_RUNTIME_DIR": str(runtime)}

    def folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def say(self, text: str) -> None:
        """Show progress, at most once a second."""
        now = time.monotonic()
        if now - self._said_at >= PROGRESS_EVERY_S:
            self._said_at = now
            print(text, file=sys.stderr, flush=True)

    def goat(self, *flags: str, workspace: Path | None = None) -> list[str]:
        """The command that serves us over stdio."""
        where = workspace or self.folder("workspace")
        return [str(Path(sys.executable).with_name("goat-mcp")), "serve", "--workspace", str(where), *flags]

    def goat_over_http(self, port: int, *flags: str) -> list[str]:
        """Without a token and without a limit of calls per second, which would end a measurement."""
        open_to_all = ("--http", f"127.0.0.1:{port}", "--no-token", "--mode", "bypassPermissions")
        return self.goat(*open_to_all, "--set", "limits.calls_per_s=0", *flags)

    def upstreams_file(self, entries: Mapping[str, Mapping[str, object]], name: str) -> Path:
        path = self.root / f"{name}.json"
        path.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
        return path

    def corpus(self) -> Corpus:
        """The tree to search, made at first use; in `kept_corpus` it is used again."""
        if self._corpus is None:
            root = self.kept_corpus or self.root / "corpus"
            if root.is_dir() and any(root.iterdir()):
                self._corpus = Corpus(root, CORPUS_FILES + 1, CORPUS_IGNORED_FILES)
            else:
                self._corpus = make_corpus(
                    root, files=CORPUS_FILES, ignored_files=CORPUS_IGNORED_FILES, on_progress=self.say
                )
        return self._corpus

    @contextmanager
    def http_server(self, command: Sequence[str], port: int) -> Generator[subprocess.Popen[bytes]]:
        """Run `command`, which listens on `port`, for the length of the block."""
        log = self.root / f"http-{port}.log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=self.env
            )
        try:
            _wait_until_listening(process, port, log)
            yield process
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM; SIGKILL if it does not end within 10 s."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def script(name: str, *arguments: str, python: Path | None = None) -> list[str]:
    """The command that runs one of `bench/servers`."""
    return [str(python or sys.executable), str(SERVERS / f"{name}.py"), *arguments]


def rg_command() -> str:
    """The ripgrep that the product uses."""
    beside = Path(sys.executable).with_name("rg")
    if not beside.exists():
        raise CannotMeasure("rg is not beside the Python that runs this; `make setup` installs it")
    return str(beside)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + LISTEN_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CannotMeasure(f"{process.args!r} ended: {log.read_text(errors='replace')[-600:]}")
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise CannotMeasure(f"{process.args!r} does not listen after {LISTEN_TIMEOUT_S:.0f} s")
