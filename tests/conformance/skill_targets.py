"""What the suite's scenarios for skills are run against: a server of ours that has skills, goat-mcp in front of it over
both transports, and goat-mcp with skills of the user's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.conformance.fixture.skills import FILES
from tests.conformance.targets import child, direct, goat

SKILL_SCENARIOS = ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest")
SKILL_CLIENT_SCENARIOS = (
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
)
_FIXTURE = [sys.executable, "-m", "tests.conformance.fixture.skills"]
_QUALIFIED = {"naming": "qualified"}
"""The names of skills, too, are not the upstream's own then."""


@contextmanager
def _direct(folder: Path) -> Generator[str]:
    with direct(folder, server=_FIXTURE) as url:
        yield url


@contextmanager
def _own(folder: Path) -> Generator[str]:
    """Two of the fixture's skills, as folders of the user's."""
    for uri, text in FILES.items():
        name = uri.removeprefix("skill://")
        if not name.startswith("acme/"):
            file = folder / "skills" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
    with goat(folder, {}, f'skills=["{folder}/skills"]') as front:
        yield front


@contextmanager
def _relayed_http(folder: Path) -> Generator[str]:
    with _direct(folder) as url, goat(folder, {"url": url, **_QUALIFIED}) as front:
        yield front


@contextmanager
def _relayed_stdio(folder: Path) -> Generator[str]:
    with goat(folder, {**child(server=_FIXTURE), **_QUALIFIED}) as front:
        yield front


SKILL_TARGETS: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "direct": _direct,
    "skills of goat-mcp": _own,
    "HTTP upstream": _relayed_http,
    "stdio upstream": _relayed_stdio,
}
