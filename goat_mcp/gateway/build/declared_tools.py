"""What a user declares outside settings - tools, upstreams, toolsets, profiles, and skills - in one gateway.

All but skills is read again when it changes (design D15). Most starts have none of it: then nothing that reads YAML is
loaded. Which directories count is `chosen_manifests`'.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from goat_mcp.catalog.filter import ProfileOptions
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import SEPARATOR
from goat_mcp.gateway.build import manifests as chosen_manifests
from goat_mcp.gateway.build.tools import DeclaredToolsets, names_selected
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.config.upstream_files import DeclaredEntry

if TYPE_CHECKING:  # loaded where there are some
    from goat_mcp.agents.agent_types import AgentType
    from goat_mcp.manifests.folder import ManifestSet
    from goat_mcp.manifests.manifests import Manifests, ManifestServices
    from goat_mcp.manifests.skills import Skill, SkillProblem
    from goat_mcp.manifests.yaml_document import ManifestProblem


ChosenT = TypeVar("ChosenT")


class DeclaredTools:
    """`settings` are those that were given, with the profiles that manifests declare, `toolsets` what each declared
    toolset holds; both as they are in force.

    Reading comes first, since profiles are settings; `use` puts the tools into the registry.
    """

    def __init__(self, settings: Settings) -> None:
        self._undeclared = settings
        self._read = chosen_manifests.read(settings)
        self._choice_problems: Sequence[ManifestProblem] = ()
        self._folder_problems: Sequence[ManifestProblem] = ()
        self._upstreams: Sequence[UpstreamConfig] | None = None
        self._logged: list[dict[str, Any]] = []
        self.toolsets: DeclaredToolsets = {}
        if self._read is not None:
            settings, self._choice_problems = chosen_manifests.with_declared_profiles(settings, self._read.users)
        self.settings = settings
        self._manifests: Manifests | None = None
        self.skills: Sequence[Skill] = ()
        self._skill_problems: Sequence[SkillProblem] = ()

    def use(
        self,
        registry: Registry,
        state: StateDirectory,
        writable: Sequence[Path],
        services: Callable[[], ManifestServices],
    ) -> None:
        """`writable` is where calls may write. Raises `BrokenSettings` for a directory that cannot be read whole."""
        if self._read is not None:
            from goat_mcp.manifests.manifests import Manifests

            self._state = state
            self._registry = registry
            chosen_manifests.seal(self._read.folders, self.settings, state, writable)
            self._manifests = Manifests(self._read.folders, self._read.shipped, services=services(), registry=registry)
            self._manifests.register(self._read.folders.read())
            self.toolsets = chosen_manifests.declared_toolsets(self._manifests.declared)
        if self.settings.skills:
            from goat_mcp.manifests.skills import SOURCE, read_skills

            self.skills, self._skill_problems = read_skills(self.settings.skills, self.settings.contents)
            registry.replace_source(SOURCE, self.skills)

    @property
    def documents(self) -> ManifestSet | None:
        """What manifests declare, as it is now; None where there are none."""
        return None if self._manifests is None else self._manifests.declared

    def choose_again(self, choose: Callable[[Settings, DeclaredToolsets], ChosenT]) -> ChosenT | None:
        """What `choose` makes of toolsets and profiles as they are declared now, which is in force then. None where
        that is what they were.

        What cannot be used leaves in force what was there before, and is a problem. So does a profile that is gone:
        clients go by it, and would have more without it than was meant for them.
        """
        if self._manifests is None:
            return None
        with_profiles, problems = chosen_manifests.with_declared_profiles(self._undeclared, self._manifests.declared)
        toolsets = chosen_manifests.declared_toolsets(self._manifests.declared)
        with_gone = {**self.toolsets, **toolsets}
        kept = {name: options for name, options in self.settings.profiles.items() if name not in with_profiles.profiles}
        complaints = [f"no usable profile {name} is declared" for name in kept]

        def usable(
            profiles: Mapping[str, ProfileOptions], toolsets: DeclaredToolsets
        ) -> tuple[Settings, DeclaredToolsets, ChosenT] | None:
            settings = self._undeclared.model_copy(update={"profiles": profiles})
            try:
                return settings, toolsets, choose(settings, toolsets)
            except BrokenSettings as broken:
                complaints.append(broken.message)
                return None

        profiles = {**with_profiles.profiles, **kept}
        found = usable(profiles, toolsets) or usable(profiles, with_gone)
        if found is None:
            # One of them breaks it: the others count.
            now, found = self.settings.profiles, usable(self.settings.profiles, with_gone)
            for name, options in profiles.items():
                if now.get(name) != options and (more := usable({**now, name: options}, with_gone)) is not None:
                    now, found = more[0].profiles, more
        self._choice_problems = (*problems, *map(self._stays, dict.fromkeys(complaints)))
        if found is None or (found[0].profiles, found[1]) == (self.settings.profiles, self.toolsets):
            return None
        self.settings, self.toolsets, chosen = found
        return chosen

    def with_profiles(self, settings: Settings) -> Settings:
        """Settings that were read again, with the profiles in force."""
        return settings.model_copy(update={"profiles": self.settings.profiles})

    def use_settings(self, settings: Settings, with_profiles: Settings) -> None:
        """Go by these from now on."""
        self._undeclared, self.settings = settings, with_profiles

    def _stays(self, what: str) -> ManifestProblem:
        from goat_mcp.manifests.yaml_document import ManifestProblem

        assert self._manifests is not None
        return ManifestProblem(
            self._manifests.folders[0], 0, f"{what}: what was declared before stays in use", "fix it"
        )

    def upstreams(self) -> Sequence[DeclaredEntry]:
        """The declared upstreams, as they are now."""
        if self._manifests is None:
            return ()
        return [
            DeclaredEntry(document.name, document.entry, document.document.file)
            for document in self._manifests.declared.upstreams
        ]

    def agent_types(self) -> Sequence[AgentType]:
        """The declared types of agents, as they are now, each with the tools that its selections name."""
        if self._manifests is None or not self._manifests.declared.agents:
            return ()
        specs = [tool.spec for tool in self._registry.snapshot.tools.values()]
        return [
            document.agent_type(
                None if document.tools is None else names_selected(document.tools, self.toolsets, specs)
            )
            for document in self._manifests.declared.agents
        ]

    def know_upstreams(self, upstreams: Sequence[UpstreamConfig]) -> None:
        """All upstreams that there are now: toolsets may name them."""
        self._upstreams = upstreams

    def reached_by_tools(self, writable: Sequence[Path]) -> None:
        """Calls may write in other directories now: manifests in them count as they are at this moment."""
        if self._manifests is None:
            return
        from goat_mcp.manifests.sealed_copy import is_within_reach

        for folder in self._manifests.watched:
            if os.path.isdir(folder) and is_within_reach(folder, writable):  # noqa: PTH112  # `Path` raises for what may not be looked at
                try:
                    copy = chosen_manifests.copy_of(folder, self.settings, self._state)
                except BrokenSettings as broken:
                    # A start would stop; a session goes on, without what could become a model's own code.
                    from goat_mcp.manifests.yaml_document import ManifestProblem

                    problem = ManifestProblem(folder, 0, f"nothing of it is used: {broken.message}", broken.suggestion)
                    self._folder_problems = (*self._folder_problems, problem)
                    copy = self._state.folder() / "no_manifests"
                self._manifests.replace_with_copy(folder, copy)

    def why_missing(self, name: str) -> ToolError | None:
        """For a tool of a resource whose manifest cannot be used: what is wrong with that."""
        resource, separator, _ = name.partition(SEPARATOR)
        if not resource or not separator or self._manifests is None:
            return None
        for problem in self._manifests.declared.problems:
            if problem.is_fatal and problem.line and _speaks_of(problem.file, resource):
                return ToolError(
                    ErrorCode.TOOL_NOT_FOUND,
                    f"{name[:200]} is not there, since its manifest cannot be used: {problem.location}: {problem.what}",
                    f"Tell the user: {problem.remedy}.",
                )
        return None

    def manifest_problems(self) -> Sequence[ManifestProblem]:
        """What is wrong with the documents, as they are now."""
        found = self._manifests.declared.problems if self._manifests is not None else ()
        return (*found, *self._strange_members(), *self._choice_problems, *self._folder_problems)

    def _strange_members(self) -> Sequence[ManifestProblem]:
        """What declared toolsets and agents name that is nowhere."""
        if self._manifests is None or not (self._manifests.declared.toolsets or self._manifests.declared.agents):
            return ()
        from goat_mcp.manifests.toolset_checks import UpstreamNames, unknown_members

        names: UpstreamNames | None = None
        if self._upstreams is not None:
            are_flat = any(upstream.naming == "flat" for upstream in self._upstreams)
            names = UpstreamNames([upstream.server for upstream in self._upstreams], are_flat)
        return tuple(unknown_members(self._manifests.declared, names, chosen_manifests.shipped))

    def problems(self) -> list[dict[str, Any]]:
        """What is wrong with it now: `name`, `reason_code`, `detail`."""
        found = [
            {
                "name": problem.file.name,
                "reason_code": "broken_manifest" if problem.is_fatal else "manifest_warning",
                "detail": str(problem),
            }
            for problem in self.manifest_problems()
            if problem.level != "note"
        ]
        found += chosen_manifests.unknown_tool_settings(self.settings, self.documents)
        return found + [
            {"name": skill.file.parent.name, "reason_code": code, "detail": f"{skill.file}: {skill.what}"}
            for code, problems in (("broken_skill", self._skill_problems), ("skill_not_served", self._not_served()))
            for skill in problems
        ]

    def _not_served(self) -> Sequence[SkillProblem]:
        """Skills that only tools give to a model."""
        if not self.skills:
            return ()
        from goat_mcp.manifests.served_skills import served_skills

        return served_skills(self.skills)[1]

    def log_problems(self, telemetry: Telemetry) -> None:
        """Those that were not there when it was last asked for."""
        before, self._logged = self._logged, self.problems()
        for problem in self._logged:
            if problem not in before:
                telemetry.warning("declared tools", problem=problem["detail"], reason_code=problem["reason_code"])

    async def watch(self, changed: Callable[[], None]) -> None:
        """Follow what changes on disk, until cancelled; `changed` is called after each reload."""
        if self._manifests is not None:
            await self._manifests.watch(changed)

    async def close(self) -> None:
        """End what handlers run."""
        if self._manifests is not None:
            await self._manifests.close()


def _speaks_of(file: Path, resource: str) -> bool:
    """Whether a broken manifest means to declare it: what it says may be no YAML, so its words are looked for."""
    if resource in (file.parent.name, file.stem):
        return True
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return False
    return re.search(rf"\bname:\s*[\"']?{re.escape(resource)}(?![\w-])", text) is not None
