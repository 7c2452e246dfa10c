"""The way out of a sandbox whose network is `domains`, with real programs in both kinds of sandbox."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap
from goat_mcp.commands.sandbox.confinement import Bounds, Confinement, Job, ProxyAccess
from goat_mcp.commands.sandbox.domain_proxy import DomainProxy
from goat_mcp.commands.sandbox.landlock import Landlock
from goat_mcp.commands.sandbox.launcher import launcher_needs
from goat_mcp.commands.sandbox.options import Network
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.seccomp import Sockets, system_call_filter
from goat_mcp.processes.linux_landlock import TCP_FROM_ABI
from tests.commands.sandbox.bubblewrapped import PATH, needs_bubblewrap
from tests.commands.sandbox.landlocked import ABI
from tests.web.http.certificates import self_signed
from tests.web.http.local_server import LocalServer, page, serving

pytestmark = pytest.mark.anyio
HOST, OTHER = "files.example.org", "evil.example.org"
LIMIT_S = 60
PYTHON = os.path.realpath(sys.executable)
"""Readable inside, as the opener's own interpreter is."""


async def local_addresses(host: str, port: int) -> Sequence[str]:
    return ("127.0.0.1",)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@dataclass
class Inside:
    """A sandbox with one way out, and the web server it may reach."""

    way: Confinement
    access: ProxyAccess
    server: LocalServer
    root: Path
    certificate: Path

    async def run(self, *arguments: str) -> tuple[int | None, str, str]:
        """Exit code, stdout and stderr of a program in there."""
        bounds = Bounds(writable=(self.root,), readable=launcher_needs(), network=Network.DOMAINS, proxy=self.access)
        environment = {"PATH": PATH, "HOME": str(self.root), "HTTPS_PROXY": "http://the-users-own"}
        job = Job(arguments=arguments, directory=self.root, environment=environment, bounds=bounds)
        launch = self.way.launch(job)
        process = await asyncio.create_subprocess_exec(
            *launch.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=launch.environment,
            cwd=launch.directory,
            pass_fds=launch.pass_fds,
        )
        for descriptor in launch.own_fds:
            os.close(descriptor)
        try:
            async with asyncio.timeout(LIMIT_S):
                stdout, stderr = await process.communicate()
        finally:
            launch.finish()
        return process.returncode, stdout.decode(), stderr.decode()


@asynccontextmanager
async def inside(way: Confinement, root: Path, files: dict[str, bytes] | None = None) -> AsyncGenerator[Inside]:
    tls, pem = self_signed(HOST)
    certificate = root / "certificate.pem"
    certificate.write_bytes(pem)
    answers = {path: page(data, content_type="application/octet-stream") for path, data in (files or {}).items()}
    proxy = DomainProxy((HOST,), private=(HOST, OTHER), resolve=local_addresses)
    async with serving(answers, tls=tls) as server:
        access = await proxy.start()
        try:
            yield Inside(way, access, server, root, certificate)
        finally:
            await proxy.stop()


@pytest.fixture
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> Bubblewrap:
    return Bubblewrap(
        Placeholders(tmp_path_factory.mktemp("notes")), system_call_filter=lambda: system_call_filter(Sockets.NETWORK)
    )


@pytest.fixture(
    params=[
        pytest.param("bubblewrap", marks=needs_bubblewrap),
        pytest.param(
            "landlock", marks=pytest.mark.skipif(ABI < TCP_FROM_ABI, reason="this kernel's Landlock knows no TCP")
        ),
    ]
)
def way(request: pytest.FixtureRequest, bubblewrap: Bubblewrap) -> Confinement:
    return bubblewrap if request.param == "bubblewrap" else Landlock()


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
class TestCurl:
    async def test_reaches_an_allowed_host_whose_certificate_it_checks_itself(
        self, way: Confinement, tmp_path: Path
    ) -> None:
        async with inside(way, tmp_path, {"/a": b"hello"}) as sandbox:
            url = sandbox.server.url("/a", HOST, "https")
            ended = await sandbox.run("curl", "-sS", "--cacert", str(sandbox.certificate), url)
            unchecked = sandbox.server.requests

        assert ended == (0, "hello", "")
        assert len(unchecked) == 1

    async def test_is_refused_another_host(self, way: Confinement, tmp_path: Path) -> None:
        async with inside(way, tmp_path, {"/a": b"canary"}) as sandbox:
            code, out, err = await sandbox.run("curl", "-sS", "-k", sandbox.server.url("/a", OTHER, "https"))
            requests = sandbox.server.requests

        assert (code, out, requests) == (56, "", [])
        assert "403" in err

    async def test_has_no_other_way_out(self, way: Confinement, tmp_path: Path) -> None:
        async with inside(way, tmp_path, {"/a": b"canary"}) as sandbox:
            url = sandbox.server.url("/a", "127.0.0.1", "https")
            code, out, _ = await sandbox.run("curl", "-sS", "-k", "--noproxy", "*", url)
            requests = sandbox.server.requests

        assert (code, out, requests) == (7, "", [])


async def test_a_python_program_is_told_which_host_and_which_setting(way: Confinement, tmp_path: Path) -> None:
    program = f"""
import urllib.request
try: urllib.request.urlopen("https://{OTHER}/")
except OSError as problem: print(problem)
"""
    async with inside(way, tmp_path) as sandbox:
        code, out, err = await sandbox.run(PYTHON, "-I", "-c", program)

    assert (code, err) == (0, "")
    assert out == f"<urlopen error Tunnel connection failed: 403 {OTHER} is not in sandbox_domains>\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
async def test_git_clones_from_an_allowed_host(way: Confinement, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    git = ("git", "-c", "user.name=a", "-c", "user.email=b@c", "-C", str(origin))
    for command in (
        ("git", "init", "-q", str(origin)),
        (*git, "commit", "-q", "--allow-empty", "-m", "first"),
        (*git, "update-server-info"),
    ):
        subprocess.run(command, check=True)  # noqa: ASYNC221  # nothing else runs in this loop yet
    stored = [path for path in (origin / ".git").rglob("*") if path.is_file()]
    files = {f"/origin/{path.relative_to(origin / '.git')}": path.read_bytes() for path in stored}
    root = tmp_path / "root"
    root.mkdir()

    async with inside(way, root, files) as sandbox:
        url = sandbox.server.url("/origin", HOST, "https")
        trusting = ("-c", f"http.sslCAInfo={sandbox.certificate}")
        ended = await sandbox.run("git", *trusting, "clone", "-q", url, str(root / "copy"))

    assert ended == (0, "", "")
    copied = subprocess.run(  # noqa: ASYNC221  # nothing else runs in this loop any more
        ["git", "-c", "safe.directory=*", "-C", str(root / "copy"), "log", "--format=%s"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert copied.stdout == "first\n"


async def test_pip_downloads_from_an_allowed_host(way: Confinement, tmp_path: Path) -> None:
    if not shutil.which("pip", path=str(Path(sys.base_prefix) / "bin")):
        pytest.skip("this Python has no pip beside it")
    async with inside(way, tmp_path, {"/simple/nothing/": b"<html></html>"}) as sandbox:
        index = sandbox.server.url("/simple/", HOST, "https")
        options = ("--no-cache-dir", "--disable-pip-version-check", "--cert", str(sandbox.certificate), "-i", index)
        _, out, err = await sandbox.run(PYTHON, "-I", "-m", "pip", "download", *options, "nothing")
        asked = sandbox.server.paths

    assert asked == ["/simple/nothing/"], (out, err)


@needs_bubblewrap
async def test_programs_in_one_sandbox_still_reach_each_other_directly(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    program = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
try: urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/")
except OSError as problem: print(problem.code)
"""
    async with inside(bubblewrap, tmp_path) as sandbox:
        ended = await sandbox.run(PYTHON, "-I", "-c", program)

    assert ended == (0, "501\n", ended[2])


@needs_bubblewrap
async def test_the_program_has_its_environment_exit_code_and_no_descriptor_of_ours(
    bubblewrap: Bubblewrap, tmp_path: Path
) -> None:
    script = "ls /proc/self/fd | tr '\\n' ' '; echo ${LC_CTYPE-none} $http_proxy $NO_PROXY; exit 5"

    async with inside(bubblewrap, tmp_path) as sandbox:
        ended = await sandbox.run("/bin/sh", "-c", script)

    assert ended == (5, "0 1 2 3 none http://127.0.0.1:3128 localhost,127.0.0.1,::1\n", "")


@needs_bubblewrap
async def test_a_program_that_has_ended_leaves_no_descriptor(bubblewrap: Bubblewrap, tmp_path: Path) -> None:
    async with inside(bubblewrap, tmp_path) as sandbox:
        before = open_descriptors()

        for _ in range(3):
            await sandbox.run("true")
        closed = asyncio.Event()
        asyncio.get_running_loop().call_soon(closed.set)  # behind the closing, which comes through the loop as well
        await closed.wait()

        assert open_descriptors() <= before  # the collector may close what an earlier test has left
