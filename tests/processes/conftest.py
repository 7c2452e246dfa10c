"""The two kinds of kernels that tests of processes run on."""

from __future__ import annotations

import pytest

from tests.processes.processes import LINUX, OTHER, without_linux


@pytest.fixture(params=[pytest.param(LINUX, marks=pytest.mark.linux_only("uses all that Linux has")), OTHER])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the code may use of the system: all of it, or what macOS has, too."""
    if request.param == OTHER:
        without_linux(monkeypatch)
    return request.param
