"""Which hosts the entries of `sandbox_domains` name. Pure, and loaded at start with the settings."""

from __future__ import annotations

from collections.abc import Collection

from goat_mcp.web.http.domains import NotAHost, ascii_host, host_is_in_domain


def host_is_among(host: str, domains: Collection[str]) -> bool:
    """Whether a host is one of these, or below `*.` and one of these (R-NET-8)."""
    for domain in domains:
        parent = domain.strip().removeprefix("*.")
        if not host_is_in_domain(host, parent):
            continue
        if (ascii_host(host) == ascii_host(parent)) != (parent != domain.strip()):
            return True
    return False


def check_domain(entry: str) -> str:
    """An entry of `sandbox_domains` as it was given. Raises `ValueError` for what can name no host."""
    try:
        ascii_host(entry.strip().removeprefix("*."))
    except NotAHost as problem:
        raise ValueError(f"{entry[:80]!r} is no host name; write example.org or *.example.org: {problem}") from None
    return entry
