"""The configurations of the balancers, as haproxy and nginx themselves check them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from goat_mcp.server.http.server import KEPT_FOR_BALANCER_S
from tests.deploy.balancers import BALANCERS, HAPROXY, NGINX, Balancer
from tests.docs.test_documents import ROOT

TEAM = ROOT / "docs" / "team.md"


@pytest.mark.parametrize("balancer", BALANCERS, ids=lambda one: one.name)
def test_the_balancer_takes_its_configuration_and_not_a_broken_one(balancer: Balancer, tmp_path: Path) -> None:
    program = balancer.found()
    good = balancer.written(tmp_path, "127.0.0.1:18080", ["127.0.0.1:18081", "127.0.0.1:18082", "127.0.0.1:18083"])
    broken = tmp_path / "broken"
    broken.write_text(good.read_text().replace("replicas", "repli cas"))

    assert subprocess.run(balancer.check(program, good), capture_output=True, timeout=60).returncode == 0
    assert subprocess.run(balancer.check(program, broken), capture_output=True, timeout=60).returncode != 0


def test_a_replica_keeps_idle_connections_longer_than_the_balancers_do() -> None:
    """nginx keeps those to its upstreams for 60 s, if nothing else is said."""
    kept_s = re.findall(r"timeout http-keep-alive (\d+)s", HAPROXY.config.read_text())

    assert "keepalive_timeout" not in NGINX.config.read_text()
    assert [int(seconds) < KEPT_FOR_BALANCER_S for seconds in (*kept_s, 60)] == [True, True]


def test_a_replica_that_leaves_keeps_the_calls_that_it_has() -> None:
    """The balancer only sends nothing new to a replica whose probe says 503."""
    settings = [line for line in HAPROXY.config.read_text().splitlines() if not line.lstrip().startswith("#")]

    assert [line for line in settings if "shutdown-sessions" in line] == []


def test_the_page_says_how_long_a_replica_that_stands_still_gets_new_calls() -> None:
    """The first probe is sent an interval later, each one waits for its answer, and later ones come faster."""
    settings = HAPROXY.config.read_text()
    probes = re.search(r"check inter (\d+)s fastinter (\d+)ms fall (\d+)", settings)
    answer = re.search(r"timeout check (\d+)s", settings)
    said = re.search(r"stands still \(.*\| for (\d+) s haproxy", TEAM.read_text())
    assert probes and answer and said

    inter_s, fast_ms, fall = map(int, probes.groups())
    longest_s = inter_s + fall * int(answer[1]) + (fall - 1) * fast_ms / 1000

    assert longest_s <= int(said[1]) < longest_s + 1
