"""The address of a service whose paths begin with it, as a setting."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def _check(url: str) -> str:
    if url and not _is_base_url(url):
        raise ValueError("wants http(s)://HOST[:PORT][/PATH], without user, password, ? or #")
    return url.rstrip("/")


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and has_address and "@" not in parts.netloc and not set("?#") & set(url)


BaseUrl = Annotated[str, AfterValidator(_check)]
"""Whole, without a secret in it and without a slash at its end; empty where there is none."""
