"""The settings `sandbox` and `sandbox_*`, and which hosts the entries of `sandbox_domains` name."""

from __future__ import annotations

import os
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from goat_mcp.core.settings_part import SettingsPart, one_or_many
from goat_mcp.web.http.domains import NotAHost, ascii_host, host_is_in_domain

FOLDER = "sandbox"
"""Of the state directory: the notes of what sandboxes left in workspaces, and temporary files."""


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
    """An entry of `sandbox_domains`, unchanged. Raises `ValueError` if it can name no host."""
    try:
        ascii_host(entry.strip().removeprefix("*."))
    except NotAHost as problem:
        raise ValueError(f"{entry[:80]!r} is no host name; write example.org or *.example.org: {problem}") from None
    return entry


class SandboxMode(StrEnum):
    """No confinement, the best available one, or refuse to run without one."""

    OFF = "off"
    AUTO = "auto"
    REQUIRED = "required"


class Network(StrEnum):
    """What a confined process reaches: nothing, everything, or the named hosts through our proxy."""

    DENY = "deny"
    ALLOW = "allow"
    DOMAINS = "domains"


def _absolute(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    opened = tuple(path.expanduser() for path in paths)
    for path in opened:
        if not path.is_absolute() or ".." in path.parts or "\0" in os.fspath(path):
            raise ValueError(f"{str(path)!r} is not an absolute path")
    return opened


_Paths = Annotated[tuple[Path, ...], BeforeValidator(one_or_many), AfterValidator(_absolute)]
_Domains = Annotated[tuple[Annotated[str, AfterValidator(check_domain)], ...], BeforeValidator(one_or_many)]


class SandboxOptions(SettingsPart):
    """`sandbox` None: off if a person sees every command, `auto` if commands may run unasked (design D8).

    `sandbox_read` and `sandbox_write` are directories and files outside the workspace. `sandbox_domains` are the hosts
    that `sandbox_network: domains` allows (`example.org` means itself, `*.example.org` all below it).
    """

    sandbox: SandboxMode | None = None
    sandbox_network: Network = Network.DENY
    sandbox_read: _Paths = ()
    sandbox_write: _Paths = ()
    sandbox_domains: _Domains = ()
