"""From the skills that an upstream lists to entries we can pass on (SEP-2640): a broken one is rejected alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.core.json_values import has_infinity, is_deeper
from goat_mcp.core.skill_uris import MAX_NAME_CHARS, is_below, is_skill_name, name_of, root_of, why_unusable
from goat_mcp.files.documents.visible_text import hides_something, make_visible
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry

DYNAMIC = "dynamic"
MAX_FRONT_MATTER_CHARS = 64 * 1024
"""Of its JSON. Ours may be 20,000 characters of YAML."""
MAX_LEVELS = 30
MAX_FILES = 5_000
"""Ten times what every host accepts; a host that takes more than it must may have them."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_NAME_CHARS = 200
_NOTHING: Mapping[str, Any] = {}
_DUPLICATE = "it is listed twice; the first one is used"


@dataclass(frozen=True)
class ValidSkills:
    """`entries` as the upstream sent them, each URI once."""

    entries: tuple[Mapping[str, Any], ...]
    rejected: tuple[RejectedEntry, ...]


def valid_skills(listed: Iterable[Any]) -> ValidSkills:
    entries: dict[str, Mapping[str, Any]] = {}
    rejected: list[RejectedEntry] = []
    for raw in listed:
        entry: Mapping[str, Any] = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else _NOTHING
        uri = entry.get("uri")
        name = make_visible(uri[:_NAME_CHARS]) if isinstance(uri, str) else ""
        if why := why_invalid(entry):
            code = ReasonCode.HIDDEN_DATA if why == _HIDDEN else ReasonCode.BROKEN_ENTRY
            rejected.append(RejectedEntry(name, why, code, kind="skill"))
        elif entry["uri"] in entries:
            rejected.append(RejectedEntry(name, _DUPLICATE, ReasonCode.LISTED_TWICE, kind="skill"))
        else:
            entries[entry["uri"]] = entry
    return ValidSkills(tuple(entries.values()), tuple(rejected))


_HIDDEN = "its front matter holds invisible characters"


def why_invalid(entry: Mapping[str, Any]) -> str:
    """Why no host may load a skill with this entry, or no client should be shown it; empty if nothing is wrong."""
    uri = entry.get("uri")
    if why := why_unusable(uri):
        return f"its uri {why}"
    root = root_of(str(uri))
    if root is None:
        return "its uri does not end in /SKILL.md"
    fields = entry.get("frontmatter")
    if not isinstance(fields, Mapping):
        return "its frontmatter is no object"
    if why := _why_front_matter(cast("Mapping[str, Any]", fields), name_of(root)):
        return why
    resources = entry.get("resources")
    if resources == DYNAMIC:
        return ""
    if not isinstance(resources, list):
        return 'its resources are neither a list nor "dynamic"'
    return _why_resources(cast("list[Any]", resources), str(uri), root)


def _why_front_matter(fields: Mapping[str, Any], name: str) -> str:
    description = fields.get("description")
    if not is_skill_name(fields.get("name")):
        return f"its name is not lower-case letters, digits and single hyphens, at most {MAX_NAME_CHARS}"
    if fields["name"] != name:
        return "its name is not the last part of its folder's URI"
    if not isinstance(description, str) or not description:
        return "it has no description"
    if is_deeper(fields, MAX_LEVELS) or has_infinity(fields):
        return "its frontmatter is nested too deeply, or has a number that JSON has not"
    if len(json.dumps(fields)) > MAX_FRONT_MATTER_CHARS:
        return f"its frontmatter is longer than {MAX_FRONT_MATTER_CHARS:,} characters"
    return _HIDDEN if hides_something(fields) else ""


def _why_resources(resources: list[Any], uri: str, root: str) -> str:
    if len(resources) > MAX_FILES:
        return f"it has more than {MAX_FILES:,} files"
    seen: set[str] = set()
    for raw in resources:
        one: Mapping[str, Any] = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else _NOTHING
        file, digest, size = one.get("uri"), one.get("digest"), one.get("size")
        if why := why_unusable(file):
            return f"a file's uri {why}"
        if not is_below(str(file), root) or file in seen:
            return "a file is listed twice, or lies outside its folder"
        if not isinstance(digest, str) or not _DIGEST.match(digest):
            return "a file has no digest of the form sha256:HEX"
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            return "a file has no size in bytes"
        seen.add(str(file))
    return "" if uri in seen else "its files do not include its SKILL.md"
