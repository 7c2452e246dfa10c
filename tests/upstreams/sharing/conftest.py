from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.quick_start import module_command
from tests.upstreams.sharing.brokers import Brokers, private_runtime


@pytest.fixture
def brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Brokers]:
    # What forks it takes a while to start, which no test should wait for.
    module_command("goat_mcp.cli.resident.linux_broker")
    with private_runtime(tmp_path, monkeypatch) as ours:
        yield ours
