"""The configurations of the balancers, as haproxy and nginx themselves check them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.deploy.balancers import BALANCERS, Balancer


@pytest.mark.parametrize("balancer", BALANCERS, ids=lambda one: one.name)
def test_the_balancer_takes_its_configuration_and_not_a_broken_one(balancer: Balancer, tmp_path: Path) -> None:
    program = balancer.found()
    good = balancer.written(tmp_path, "127.0.0.1:18080", ["127.0.0.1:18081", "127.0.0.1:18082", "127.0.0.1:18083"])
    broken = tmp_path / "broken"
    broken.write_text(good.read_text().replace("replicas", "repli cas"))

    assert subprocess.run(balancer.check(program, good), capture_output=True, timeout=60).returncode == 0
    assert subprocess.run(balancer.check(program, broken), capture_output=True, timeout=60).returncode != 0
