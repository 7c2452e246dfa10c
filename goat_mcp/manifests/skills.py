"""Skills as tools: a folder with a `SKILL.md` is `skill__NAME`, which gives a model the instructions in it.

Nothing of a skill is run: its texts are read, and what they ask for goes through other tools. Off unless `skills` names
directories. Source: Shelly toolbox, `pkg/skill`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import anyio.to_thread

from goat_mcp.core.arguments import ArgumentReader, ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import NAME_CAP
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec, risk_and_hints
from goat_mcp.core.tool import Access, OwnTool
from goat_mcp.files.documents.front_matter import BrokenFrontMatter, split_front_matter
from goat_mcp.manifests.skill_folder import SkillFolder

FILE_NAME = "SKILL.md"
SOURCE = "skills"
PREFIX = "skill__"
MAX_BYTES = 256 * 1024
_MAX_DESCRIPTION_CHARS = 1_200
_MAX_LISTED = 200
_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*\Z")


class SkillInput(ToolInput):
    """`file` is one of the skill's own, as its instructions name it; without it come the instructions."""

    file: str | None = None


@dataclass(frozen=True)
class SkillProblem:
    """A folder that looks like a skill and is none."""

    file: Path
    what: str


@dataclass(frozen=True)
class Skill(OwnTool):
    """One skill as a tool. Its texts are read with each call, so that an edit counts at once."""

    reader: ClassVar[ArgumentReader[SkillInput]] = ArgumentReader(SkillInput)

    spec: ToolSpec
    files: SkillFolder

    def validate(self, arguments: Mapping[str, Any]) -> SkillInput:
        return self.reader.read(arguments)

    def access(self, input: SkillInput) -> Access:
        # As text: a name that is none is told when it is looked for.
        path = os.path.normpath(f"{self.files.path}/{input.file or FILE_NAME}")
        return Access((path,), (path,))

    async def execute(self, input: SkillInput, ctx: ToolContext) -> ToolResult:
        return await anyio.to_thread.run_sync(self._read, input.file)

    def _read(self, name: str | None) -> ToolResult:
        data = self.files.read(name or FILE_NAME, MAX_BYTES)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise ToolError(ErrorCode.BINARY, f"{name} is no UTF-8 text", "Use another tool for it.") from None
        if name is not None:
            return text_result(text)
        others = [f"  {file}" for file in self.files.names(_MAX_LISTED) if file != FILE_NAME]
        listed = ["", f"Files of this skill, in {self.files.path} (give one as `file`):", *others] if others else []
        return text_result("\n".join([split_front_matter(data)[1], *listed]))


def read_skills(
    folders: Iterable[Path], contents: Mapping[Path, bytes]
) -> tuple[Sequence[Skill], Sequence[SkillProblem]]:
    """The skills in `FOLDER/*/SKILL.md`, and what is wrong with some. `contents` are files as they were trusted: of a
    directory that is among them nothing else counts."""
    skills: dict[str, Skill] = {}
    problems: list[SkillProblem] = []
    for folder in folders:
        for file in sorted(folder.expanduser().resolve().glob(f"*/{FILE_NAME}")):
            trusted = {path: data for path, data in contents.items() if path.is_relative_to(file.parent)}
            try:
                skill = _skill(file, trusted)
            except (ToolError, BrokenFrontMatter, ValueError) as wrong:
                problems.append(SkillProblem(file, getattr(wrong, "message", str(wrong))))
                continue
            if skill.spec.name in skills:
                problems.append(SkillProblem(file, f"another skill is called {skill.spec.title} already"))
            else:
                skills[skill.spec.name] = skill
    return tuple(skills.values()), problems


def _skill(file: Path, trusted: Mapping[Path, bytes]) -> Skill:
    fields, _ = split_front_matter(trusted.get(file) or _bytes(file))
    name, description = fields.get("name", file.parent.name), fields.get("description")
    if not isinstance(name, str) or not _NAME.match(name) or len(PREFIX + name) > NAME_CAP:
        raise ValueError(f"`name` has to be letters, digits and single - or _, at most {NAME_CAP - len(PREFIX)}")
    if not isinstance(description, str) or not description.strip():
        raise ValueError("`description` is missing: it tells a model when to use the skill")
    risk, hints = risk_and_hints(SideEffect.NONE)
    spec = ToolSpec(
        name=PREFIX + name,
        title=name,
        description=description.strip()[:_MAX_DESCRIPTION_CHARS],
        input_schema=Skill.reader.schema(),
        side_effect=SideEffect.NONE,
        toolset="manifests",
        risk=risk,
        hints=hints,
        is_plain=True,
    )
    return Skill(spec, SkillFolder(file.parent, trusted))


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as problem:
        raise ToolError(ErrorCode.IO, f"{file} cannot be read: {problem.strerror}", "Ask the user.") from None
    if len(data) > MAX_BYTES:
        raise ToolError(ErrorCode.TOO_LARGE, f"{file} is longer than {MAX_BYTES} bytes", "Use Read for it.")
    return data
