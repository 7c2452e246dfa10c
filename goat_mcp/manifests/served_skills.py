"""The user's own skills for clients that know skills (SEP-2640): `skill://NAME/...`, one resource for each file.

Which folders are skills, `skills` decides; each is a tool as well. A skill that a host would have to refuse is not
served, and stays a tool. Everything here blocks: for a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from goat_mcp.core.errors import ToolError
from goat_mcp.core.skill_directories import children_of, mime_type
from goat_mcp.core.skill_uris import (
    MAX_BYTES,
    MAX_DESCRIPTION_CHARS,
    MAX_FILES,
    SCHEME,
    SKILL_FILE,
    is_skill_name,
)
from goat_mcp.core.spec import ToolSpec
from goat_mcp.files.documents.front_matter import BrokenFrontMatter
from goat_mcp.files.documents.front_matter_json import front_matter_json
from goat_mcp.manifests.skill_folder import FileDigest, SkillFolder
from goat_mcp.manifests.skills import Skill, SkillProblem

MAX_SKILL_FILE_BYTES = 256 * 1024
"""Of a `SKILL.md`; as for its tool."""
_PATH_CHARS = "!$&'()*+,;=:@-._~"


class NotServed(ValueError):
    """A host would have to refuse the skill as it is now. The text says why, and what to do."""


class SkillFile(NamedTuple):
    """One file as it is served."""

    uri: str
    name: str
    mime_type: str
    data: bytes


@dataclass(frozen=True)
class ServedSkill:
    """`spec` is that of the skill's tool, `fields` the front matter as the server found it at its start."""

    spec: ToolSpec
    files: SkillFolder
    fields: Mapping[str, Any]
    hides: Callable[[str], bool]
    """Whether rules keep a file from being read: it is no part of the skill then."""

    @property
    def root(self) -> str:
        return f"{SCHEME}{self.fields['name']}"

    @property
    def listed(self) -> dict[str, Any]:
        """Its entry in a list of resources."""
        return {
            "uri": f"{self.root}/{SKILL_FILE}",
            "name": self.fields["name"],
            "description": self.fields["description"],
            "mimeType": "text/markdown",
        }

    def entry(self) -> dict[str, Any]:
        """Its entry as it is now. Raises `NotServed`."""
        try:
            fields = _checked_fields(self.files)
            found = {uri: self.files.digest(name, MAX_BYTES) for uri, name in self._names().items()}
        except ToolError as changing:
            raise NotServed(changing.message) from None
        _check_size(found)
        if fields["name"] != self.fields["name"]:
            raise NotServed("its `name` has changed since the start; restart the server to serve it under the new one")
        listed = [{"uri": uri, "digest": f"sha256:{one.sha256}", "size": one.size} for uri, one in found.items()]
        return {"uri": f"{self.root}/{SKILL_FILE}", "frontmatter": fields, "resources": listed}

    def _names(self) -> dict[str, str]:
        """By URI, the files it has now, `SKILL.md` first."""
        names = [name for name in self.files.names(MAX_FILES + 1) if not self.hides(f"{self.files.path}/{name}")]
        if len(names) > MAX_FILES:
            raise NotServed(f"it has more than {MAX_FILES} files; no host has to load so many")
        in_order = sorted(names, key=lambda name: (name != SKILL_FILE, name))
        found = {f"{self.root}/{quote(name, safe=_PATH_CHARS + '/')}": name for name in in_order}
        if f"{self.root}/{SKILL_FILE}" not in found:
            raise NotServed(f"its {SKILL_FILE} may not be read, or is a link")
        return found

    def path_of(self, uri: str) -> str:
        """The path that a read of this URI is about, for rules; of one that is not there, where it would be."""
        return f"{self.files.path}/{self._names().get(uri, uri.removeprefix(f'{self.root}/'))}"

    def read(self, uri: str) -> SkillFile | None:
        """None for what is no file of it. Raises `ToolError`."""
        name = self._names().get(uri)
        if name is None:
            return None
        return SkillFile(uri, name, mime_type(name), self.files.read(name, MAX_BYTES))

    def children(self, uri: str) -> list[dict[str, Any]] | None:
        """The direct children of a directory of it, as resources; None for what is none."""
        return children_of(uri, self.root, self._names())


def served_skills(
    skills: Iterable[Skill], hides: Callable[[str], bool] = lambda path: False
) -> tuple[Sequence[ServedSkill], Sequence[SkillProblem]]:
    """Those that clients are served, and why others are not. What is found out for each list, `entry` says."""
    served: dict[str, ServedSkill] = {}
    problems: list[SkillProblem] = []
    for skill in skills:
        try:
            one = ServedSkill(skill.spec, skill.files, _checked_fields(skill.files), hides)
            if one.root in served:
                raise NotServed("another skill has its `name`")
            served[one.root] = one
        except (NotServed, ToolError) as why:
            problems.append(SkillProblem(skill.files.path / SKILL_FILE, f"a tool only, no skill for clients: {why}"))
    return tuple(served.values()), problems


def _checked_fields(files: SkillFolder) -> dict[str, Any]:
    try:
        fields = front_matter_json(files.read(SKILL_FILE, MAX_SKILL_FILE_BYTES))
    except BrokenFrontMatter as broken:
        raise NotServed(str(broken)) from None
    name, description = fields.get("name"), fields.get("description")
    if not is_skill_name(name):
        raise NotServed("its `name` has to be lower-case letters, digits and single hyphens, at most 64")
    if not isinstance(description, str) or not 0 < len(description) <= MAX_DESCRIPTION_CHARS:
        raise NotServed(f"its `description` has to be a text of at most {MAX_DESCRIPTION_CHARS:,} characters")
    return fields


def _check_size(found: Mapping[str, FileDigest]) -> None:
    if sum(one.size for one in found.values()) > MAX_BYTES:
        raise NotServed("its files have more than 16 MiB; no host has to load so much")
