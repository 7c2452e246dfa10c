"""What a user can configure about the sandbox: the settings `sandbox` and `sandbox_*`."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from goat_mcp.commands.sandbox.allowed_domains import check_domain
from goat_mcp.core.settings_part import SettingsPart, one_or_many


class SandboxWish(StrEnum):
    """What is wanted: nothing, the best there is, or one or no run at all."""

    OFF = "off"
    AUTO = "auto"
    REQUIRED = "required"


class Network(StrEnum):
    """What a confined process reaches: nobody, everybody, or the named hosts through our proxy."""

    DENY = "deny"
    ALLOW = "allow"
    DOMAINS = "domains"


def _wish(value: Any) -> Any:
    # YAML 1.1 reads a bare `off` as false.
    return SandboxWish.OFF if value is False else value


def _absolute(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    opened = tuple(path.expanduser() for path in paths)
    for path in opened:
        if not path.is_absolute() or ".." in path.parts or "\0" in os.fspath(path):
            raise ValueError(f"{str(path)!r} is not an absolute path")
    return opened


_Paths = Annotated[tuple[Path, ...], BeforeValidator(one_or_many), AfterValidator(_absolute)]
_Domains = Annotated[tuple[Annotated[str, AfterValidator(check_domain)], ...], BeforeValidator(one_or_many)]


class SandboxOptions(SettingsPart):
    """`sandbox` None: off where a person sees every command, `auto` where commands may run unasked (design D8).

    `sandbox_read` and `sandbox_write` are directories and files beside the workspace; `sandbox_domains` the hosts
    that `sandbox_network: domains` lets through (`example.org` means itself, `*.example.org` all below it).
    """

    sandbox: Annotated[SandboxWish | None, BeforeValidator(_wish)] = None
    sandbox_network: Network = Network.DENY
    sandbox_read: _Paths = ()
    sandbox_write: _Paths = ()
    sandbox_domains: _Domains = ()
