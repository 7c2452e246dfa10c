"""A team's server for tests and measurements: replicas with one Redis behind a real balancer, as we ship it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from tests.deploy.balancers import Balancer
from tests.e2e.conftest import UNASKED, fill
from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.free_port import free_port
from tests.redis_server import RedisServer, redis_server

KEY = "key-of-the-team-in-tests-0123456789-0123456789"
NAMES = ("goat-1", "goat-2", "goat-3")


@dataclass(frozen=True)
class Team:
    """`replicas` are reached past the balancer, too."""

    url: str
    balancer_pid: int
    replicas: Sequence[HttpGoat]
    redis: RedisServer
    workspace: Path

    @property
    def behind_balancer(self) -> HttpGoat:
        """What clients connect to."""
        return replace(self.replicas[0], url=self.url)

    def metrics_url(self, number: int) -> str:
        """Of one replica, if its metrics are on."""
        said = "".join(self.replicas[number].said)
        return said.split("metrics at ")[1].split()[0]


@contextmanager
def team(
    folder: Path,
    balancer: Balancer,
    *options: str,
    replicas: int = 3,
    needs_token: bool = True,
    names_workspace: bool = True,
) -> Generator[Team]:
    """Three replicas or fewer, all of them ready, with these options of `serve`. `names_workspace`: see `Launch`."""
    balancer.found()
    port = free_port()
    workspace = fill(folder / "workspace")
    with redis_server(folder) as redis, ExitStack() as stack:
        goats: list[HttpGoat] = []
        for name in NAMES[:replicas]:
            settings = {
                "http.hosts": f"127.0.0.1:{port}",
                "state.url": redis.url,
                "state.key": KEY,
                "replica.name": name,
                "replica.leave_delay_s": "0",
                "limits.calls_per_s": "0",
            }
            words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
            launch = Launch(folder / name, workspace, (*UNASKED, *words, *options), names_workspace=names_workspace)
            goats.append(stack.enter_context(http_goat(launch, needs_token=needs_token)))
        addresses = [urlsplit(goat.url).netloc for goat in goats]
        # Fewer replicas: the balancer takes the others for down, as nobody listens there.
        addresses += [f"127.0.0.1:{free_port()}" for _ in NAMES[replicas:]]
        pid = stack.enter_context(balancer.running(folder, port, addresses))
        yield Team(f"http://127.0.0.1:{port}/mcp", pid, goats, redis, workspace)
