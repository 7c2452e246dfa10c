"""Which hosts an entry of `sandbox_domains` lets through (R-NET-8)."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from goat_mcp.commands.sandbox.options import SandboxOptions, host_is_among


@pytest.mark.parametrize(
    ("host", "entry", "is_among"),
    [
        ("example.org", "example.org", True),
        ("EXAMPLE.org.", "example.org", True),
        ("docs.example.org", "example.org", False),
        ("docs.example.org", "*.example.org", True),
        ("a.b.example.org", "*.example.org", True),
        ("example.org", "*.example.org", False),
        ("notexample.org", "*.example.org", False),
        ("example.org.evil.net", "example.org", False),
        ("example.org.evil.net", "*.example.org", False),
        ("b\u00fccher.example", "xn--bcher-kva.example", True),
        ("10.0.0.1", "*.0.0.1", False),
    ],
)
def test_a_host_is_named_whole_or_by_what_it_lies_below(host: str, entry: str, is_among: bool) -> None:
    assert host_is_among(host, ["other.net", entry]) is is_among


@pytest.mark.parametrize("entry", ["*", "*.", "exa mple.org", "https://example.org", "a.*.org", "example.org:443"])
def test_an_entry_that_names_no_host_is_a_broken_setting(entry: str) -> None:
    with pytest.raises(ValidationError, match=r"no host name; write example\.org or"):
        SandboxOptions(sandbox_domains=(entry,))
