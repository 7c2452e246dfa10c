"""Everything looks often, so that tests wait little."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.gateway.approvals.notify import notifier
from tests.gateway.approvals.notify.desk import Desk


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "LOOK_S", 0.02)
    monkeypatch.setattr(notifier, "LOOK_AGAIN_S", 0.1)
    monkeypatch.setattr(notifier, "READ_PAUSE_S", 0.02)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
