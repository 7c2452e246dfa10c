"""One upstream's status as JSON: what the supervisor knows, with its times on the wall clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from goat_mcp.upstreams.config.entry import HttpEndpoint, UpstreamConfig
from goat_mcp.upstreams.status import UpstreamStatus

STATELESS_VERSION = "2026-07-28"
_MOMENTS = ("since_s", "next_try_s", "catalog_at_s")


def upstream_entry(status: UpstreamStatus, config: UpstreamConfig | None, now_s: float) -> dict[str, Any]:
    """Every field of `status`, so that a new one is never left out here, and what is configured."""
    entry = {name: value for name, value in dataclasses.asdict(status).items() if name not in _MOMENTS}
    entry["state"] = str(status.state)
    entry["reason_code"] = str(status.reason_code)
    entry["since"] = iso(now_s - status.since_s) if config is not None else None
    entry["next_try"] = iso(now_s + status.next_try_s) if status.next_try_s else None
    entry["era"] = _era(status.version)
    entry["catalog_at"] = iso(status.catalog_at_s) if status.catalog_at_s else None
    if config is not None:
        entry |= _configured(config)
    return entry


def with_ages(document: Mapping[str, Any], now_s: float) -> dict[str, Any]:
    """The document with how old each catalog is now; in the file that others read it would change by itself."""
    upstreams = [{**entry, "catalog_age_s": _age_s(entry["catalog_at"], now_s)} for entry in document["upstreams"]]
    return {**document, "upstreams": upstreams}


def _age_s(at: str | None, now_s: float) -> int | None:
    return None if at is None else max(0, round(now_s - datetime.fromisoformat(at).timestamp()))


def _configured(config: UpstreamConfig) -> dict[str, Any]:
    target = config.target
    is_http = isinstance(target, HttpEndpoint)
    return {
        "transport": "http" if is_http else "stdio",
        # Arguments and a URL's query are where people put secrets that nothing recognises as such.
        "target": target.url.partition("?")[0] if is_http else target.command,
        "naming": config.naming,
        "start": config.start,
        "sandboxed": not is_http and target.sandbox is not None,
    }


def _era(version: str) -> str:
    if not version:
        return ""
    return "stateless" if version >= STATELESS_VERSION else "handshake"


def iso(at_s: float) -> str:
    """Seconds since 1970 as `2026-11-22T10:00:00Z`."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
