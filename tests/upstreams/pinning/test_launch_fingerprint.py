"""Which launches fetch whatever is newest (PIN-2)."""

from __future__ import annotations

import pytest

from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.pinning.launch_fingerprint import unpinned_launch


@pytest.mark.parametrize(
    ("words", "package"),
    [
        ("npx -y gh-mcp", "gh-mcp"),
        ("npx -y @scope/gh-mcp", "@scope/gh-mcp"),
        ("npx -y @scope/gh-mcp@latest", "@scope/gh-mcp@latest"),
        ("npx --package=thing run-it", "thing"),
        ("npx -y gh-mcp@1.4.2", ""),
        ("npx -y @scope/gh-mcp@1.4.2-beta.1 --flag", ""),
        ("npx -p thing@2 run-it", "thing@2"),
        ("/usr/bin/npx ./local", ""),
        ("uvx mcp-server-git", "mcp-server-git"),
        ("uvx mcp-server-git@latest --repo x", "mcp-server-git@latest"),
        ("uvx --from mcp-git serve", "mcp-git"),
        ("uvx --from mcp-git==1.0 serve", ""),
        ("uvx --python 3.12 mcp-server-git@1.2.0", ""),
        ("pipx run thing==0.3", ""),
        ("pipx run thing", "thing"),
        ("python -m server", ""),
        ("npx", ""),
    ],
)
def test_a_launch_that_names_no_version_is_told(words: str, package: str) -> None:
    command, *args = words.split()

    advice = unpinned_launch(UpstreamConfig(name="up", server="up", target=StdioLaunch(command, tuple(args))))

    assert advice.partition(" names no version")[0] == (f"package {package}" if package else "")
