"""URIs of skills (SEP-2640), and those under which clients of a gateway see the skills of its upstreams.

A skill is known by the URI of its `SKILL.md`; the folder that holds that file is its root, and the root's last segment
its name. Text only: nothing here reads a file. Source: the Skills extension, "Resource Mapping" and "Limits".
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from goat_mcp.core.names import OWN_URIS, UPSTREAM_PREFIX

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
SKILL_FILE = "SKILL.md"
SCHEME = "skill://"
DIRECTORY_TYPE = "inode/directory"
MAX_FILES = 512
MAX_BYTES = 16 * 1024 * 1024
"""Of one skill, all files together: what every host has to accept."""
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1_024
MAX_URI_CHARS = 2_000
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_URI = re.compile(r"([a-z][a-z0-9+.-]*)://([^?#\s\\]+)\Z")


def is_skill_name(name: object) -> bool:
    """Whether the Agent Skills specification takes it as the name of a skill."""
    return isinstance(name, str) and len(name) <= MAX_NAME_CHARS and _NAME.match(name) is not None


def root_of(uri: str) -> str | None:
    """`skill://a/b/SKILL.md` -> `skill://a/b`. None for a URI that is no skill's."""
    root, slash, file = uri.rpartition("/")
    return root if slash and file == SKILL_FILE and "://" in root and not root.endswith("/") else None


def name_of(root: str) -> str:
    """`skill://a/b` -> `b`."""
    return root.rpartition("/")[2]


def is_below(uri: str, root: str) -> bool:
    return uri.startswith(f"{root}/")


def why_unusable(uri: object) -> str:
    """What keeps a URI of a skill's file, or of its root, from being passed on; empty if nothing does.

    What a client that takes it apart could read as another file is refused: `..`, also as `%2e%2e`, and empty segments.
    """
    if not isinstance(uri, str) or len(uri) > MAX_URI_CHARS:
        return "is no text of at most 2,000 characters"
    found = _URI.match(uri)
    if found is None or not uri.isprintable():
        return "is no URI of the form scheme://path"
    segments = [unquote(segment) for segment in found[2].split("/")]
    if any(segment in ("", ".", "..") or "/" in segment or "\\" in segment for segment in segments):
        return "has a segment that is empty or leads elsewhere"
    if f"{found[1]}://" == SCHEME and ":" in segments[0]:
        return "has a colon in its first segment"
    return "is reserved for goat-mcp" if uri.startswith(OWN_URIS) else ""


def qualified(prefix: str, uri: str) -> str:
    """The URI under which clients know a file of an upstream's skill; `prefix` is empty for native URIs.

    `skill://refunds/SKILL.md` of `mcp__shop` is `skill://mcp__shop/refunds/SKILL.md`; of another scheme,
    `repo://x/y/SKILL.md` is `skill://mcp__shop/repo:/x/y/SKILL.md`. A pure function, and `native` its inverse (NAM-5).
    """
    if not prefix:
        return uri
    scheme, _, rest = uri.partition("://")
    return f"{SCHEME}{prefix}/{rest}" if f"{scheme}://" == SCHEME else f"{SCHEME}{prefix}/{scheme}:/{rest}"


def native(prefix: str, uri: str) -> str | None:
    """The upstream's own URI of one that clients know; None for one that is not below `prefix`."""
    if not prefix:
        return uri
    start = f"{SCHEME}{prefix}/"
    if not uri.startswith(start):
        return None
    rest = uri.removeprefix(start)
    first, slash, more = rest.partition("/")
    return f"{first}//{more}" if slash and first.endswith(":") else f"{SCHEME}{rest}"


def is_reserved(uri: str) -> bool:
    """Whether only the skills of an upstream with a qualified name may have it."""
    return uri.startswith(f"{SCHEME}{UPSTREAM_PREFIX}")
