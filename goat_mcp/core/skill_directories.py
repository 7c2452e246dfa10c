"""The directories of a skill (SEP-2640), as its list of files shows them."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from goat_mcp.core.skill_uris import DIRECTORY_TYPE, is_below

_TYPES = {".md": "text/markdown", ".py": "text/x-python", ".yaml": "application/yaml", ".yml": "application/yaml"}


def children_of(uri: str, root: str, files: Iterable[str]) -> list[dict[str, Any]] | None:
    """What a skill's list of files says of one of its directories: files and directories, each once."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        if not is_below(file, uri):
            continue
        name, slash, _ = file.removeprefix(f"{uri}/").partition("/")
        kind = DIRECTORY_TYPE if slash else mime_type(name)
        found.setdefault(name, {"uri": f"{uri}/{name}", "name": _shown(name), "mimeType": kind})
    return list(found.values()) if found and (uri == root or is_below(uri, root)) else None


def _shown(name: str) -> str:
    """For people: the last part of a URI, without its percent signs."""
    plain = unquote(name)
    return plain if plain.isprintable() and "/" not in plain else name


def mime_type(name: str) -> str:
    """By the ending of a file's name."""
    stem, dot, suffix = name.rpartition(".")
    known = _TYPES.get(f"{dot}{suffix.lower()}") if stem else None
    return known or mimetypes.guess_type(name)[0] or "application/octet-stream"
