"""Whether what an upstream sends as a file of a skill is what its entry promised (SEP-2640, "Verification on Read").

A digest is no proof of anything but that entry and content agree: both come from the same upstream.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from goat_mcp.core.skill_uris import is_below, root_of
from goat_mcp.files.documents.front_matter import BrokenFrontMatter
from goat_mcp.files.documents.front_matter_json import front_matter_json, is_same_json
from goat_mcp.upstreams.listing.skill_validation import DYNAMIC

Entry = Mapping[str, Any]


def entries_about(uri: str, entries: Iterable[Entry]) -> list[Entry]:
    """The skills that a file may belong to; of nested ones all."""
    return [one for one in entries if is_below(uri, str(root_of(one["uri"])))]


def why_mismatch(uri: str, raw: Mapping[str, Any], entries: Iterable[Entry]) -> str:
    """What is not as the entries of the file's skills say; empty if nothing is. Blocking: hashes what came.

    `raw` is the upstream's answer to `resources/read`, before anything of ours was done to it.
    """
    about = entries_about(uri, entries)
    promised = [one for entry in about if (one := _promised(uri, entry)) is not None]
    is_open = any(entry["resources"] == DYNAMIC for entry in about)
    if about and not promised and not is_open:
        return "it is none of the files that the skill lists"
    data = _bytes(uri, raw)
    if data is None:
        return "it came without its content, or with that of something else"
    for one in promised:
        if one["size"] != len(data):
            return f"it has {len(data):,} bytes and not {one['size']:,} as listed"
        if one["digest"] != f"sha256:{hashlib.sha256(data).hexdigest()}":
            return "its SHA-256 is not the one that was listed"
    for entry in about:
        if entry["uri"] == uri and (why := _why_other_front_matter(data, entry["frontmatter"])):
            return why
    return ""


def _promised(uri: str, entry: Entry) -> Mapping[str, Any] | None:
    if entry["resources"] == DYNAMIC:
        return None
    return next((one for one in entry["resources"] if one["uri"] == uri), None)


def _bytes(uri: str, raw: Mapping[str, Any]) -> bytes | None:
    """Of the one content there is: a second one is covered by no digest."""
    contents: Any = raw.get("contents")
    if not isinstance(contents, list) or len(cast("list[Any]", contents)) != 1:
        return None
    (first,) = cast("list[Any]", contents)
    content: Mapping[str, Any] = cast("Mapping[str, Any]", first) if isinstance(first, Mapping) else {}
    if content.get("uri") != uri:
        return None
    text, blob = content.get("text"), content.get("blob")
    try:
        if isinstance(text, str) and blob is None:
            return text.encode()
        return base64.b64decode(blob, validate=True) if isinstance(blob, str) and text is None else None
    except (UnicodeEncodeError, binascii.Error):
        return None


def _why_other_front_matter(data: bytes, listed: Mapping[str, Any]) -> str:
    try:
        fields = front_matter_json(data)
    except BrokenFrontMatter as broken:
        return str(broken)
    return "" if is_same_json(fields, listed) else "its front matter is not the one that was listed"
