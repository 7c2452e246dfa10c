"""What a child process needs to be told in WSL."""

from __future__ import annotations

import pytest

from goat_mcp.core import platform
from goat_mcp.upstreams.transports.stdio_transport import child_environment

OURS = {"PATH": "/bin", "WSL_INTEROP": "/run/WSL/8_interop", "WSL_DISTRO_NAME": "Ubuntu", "WSLENV": "SECRET"}


def test_in_wsl_a_server_can_be_a_program_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "IN_WSL", True)

    assert child_environment({"A": "b"}, OURS) == {
        "PATH": "/bin",
        "WSL_INTEROP": "/run/WSL/8_interop",
        "WSL_DISTRO_NAME": "Ubuntu",
        "A": "b",
    }


def test_elsewhere_nothing_of_wsl_is_passed_on() -> None:
    assert child_environment({}, OURS) == {"PATH": "/bin"}
