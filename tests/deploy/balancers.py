"""The real load balancers that tests start, with the configurations that we ship."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY
from tests.e2e.processes import end

LISTENS_WITHIN_S = 20.0
_PATHS = f"{os.defpath}:/usr/sbin:/usr/local/sbin"


@dataclass(frozen=True)
class Balancer:
    name: str
    config: Path
    check: Callable[[str, Path], list[str]]
    start: Callable[[str, Path], list[str]]

    def path(self) -> str | None:
        """The program; None if it is not installed."""
        return shutil.which(self.name, path=_PATHS)

    def found(self) -> str:
        """The program. Skips the test without it."""
        program = self.path()
        if program is None:
            pytest.skip(f"no {self.name} here: run `make balancers`")
        return program

    def written(self, folder: Path, listen: str, replicas: Sequence[str]) -> Path:
        """The configuration with these addresses, and files of its own in `folder`."""
        variables = {"GOAT_LISTEN": listen, **{f"GOAT_{n}": address for n, address in enumerate(replicas, 1)}}
        text = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], self.config.read_text())
        file = folder / self.config.name.removesuffix(".template")
        file.write_text(text.replace("/tmp/goat-", f"{folder}/goat-"))
        return file

    @contextmanager
    def running(self, folder: Path, port: int, replicas: Sequence[str]) -> Generator[int]:
        """Listen on `port` of this machine. Yields the process's id."""
        config = self.written(folder, f"127.0.0.1:{port}", replicas)
        log = folder / f"{self.name}.log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(self.start(self.found(), config), stdout=stderr, stderr=stderr, text=True)
        try:
            _wait_for(port, process, log)
            yield process.pid
        finally:
            end(process)


def _wait_for(port: int, process: subprocess.Popen[str], log: Path) -> None:
    ends_at_s = time.monotonic() + LISTENS_WITHIN_S
    while time.monotonic() < ends_at_s and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"it does not listen: {log.read_text()}")


HAPROXY = Balancer(
    "haproxy",
    DEPLOY / "haproxy.cfg",
    lambda program, config: [program, "-c", "-f", str(config)],
    lambda program, config: [program, "-db", "-f", str(config)],
)
NGINX = Balancer(
    "nginx",
    DEPLOY / "nginx.conf.template",
    lambda program, config: [program, "-t", "-e", "stderr", "-c", str(config)],
    lambda program, config: [program, "-e", "stderr", "-g", "daemon off;", "-c", str(config)],
)
BALANCERS = (HAPROXY, NGINX)
