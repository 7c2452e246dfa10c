"""Which upstreams the settings, their files and manifests name, and the tools chosen over them: at the start, and
whenever one of the files has changed since (CFG-4). Reaching upstreams is the business of `goat_mcp.upstreams`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from goat_mcp.catalog.own_lists import OwnLists
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.lazy import Lazy
from goat_mcp.gateway.build.declared_tools import DeclaredTools
from goat_mcp.gateway.build.services import Services
from goat_mcp.gateway.build.tools import DeclaredToolsets, ToolSelection
from goat_mcp.settings.settings import Settings
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.entry import Confine, RootOf, UpstreamConfig
from goat_mcp.upstreams.config.upstream_files import BrokenUpstreamsFile, UpstreamFiles, UpstreamProblem, WatchedFiles
from goat_mcp.upstreams.oauth.logins import Logins
from goat_mcp.upstreams.sharing.shared_connect import Sharing
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.upstreams import Upstreams

if TYPE_CHECKING:  # loaded with the first confined upstream, or when somebody logs in
    from pathlib import Path

    from goat_mcp.commands.sandbox.options import SandboxOptions
    from goat_mcp.processes.launch import Confined
    from goat_mcp.upstreams.oauth.login_contract import LoginPrompt
    from goat_mcp.upstreams.owners.owned_connection import OwnedConnection
    from goat_mcp.upstreams.owners.owners import Owners


class ConfiguredUpstreams:
    """`at_start` is what was read first, `chosen` the choice of tools over what was read last.

    A file where calls may write stays what it was when it was read first. Raises `BrokenUpstreamsFile`.
    """

    def __init__(
        self,
        settings: Settings,
        declared: DeclaredTools,
        services: Services,
        program_tools: Collection[str] = (),
    ) -> None:
        self._settings = settings
        self._program_tools = program_tools
        self._declared = declared
        self._for_many = services.serves_http
        self._telemetry = services.telemetry
        self._files = WatchedFiles(
            settings.upstreams,
            contents=settings.contents,
            references=services.references,
            default=settings.default_upstreams,
            is_open=services.directories.tools_may_write,
            declared=declared.upstreams,
        )
        self.at_start = self._with_name_cap(self._files.load())
        self._configs = self.at_start.configs
        declared.know_upstreams(self._configs)
        self._resources: set[str] = set()
        self.chosen = self._choice(settings, declared.toolsets)

    async def follow(self, upstreams: Upstreams) -> None:
        """Have `upstreams` be what the files say, until cancelled."""

        def changed(read: UpstreamFiles) -> None:
            files = self._with_name_cap(read)
            self._telemetry.debug("upstreams were read again", servers=[config.server for config in files.configs])
            for problem in files.problems:
                if problem not in upstreams.problems:
                    log_entry_problem(self._telemetry, problem)
            self._configs = files.configs
            self._declared.know_upstreams(self._configs)
            self.chosen = self._choice(self._settings, self._declared.toolsets)
            upstreams.apply(files)

        def broken(problem: BrokenUpstreamsFile) -> None:
            kept = "what it said before stays in use"
            self._telemetry.warning("upstreams file", problem=problem.message, remedy=kept)
            name, file = problem.file.name, str(problem.file)
            detail = f"{problem.what}; {kept}"
            upstreams.keep(UpstreamProblem(name, ReasonCode.CONFIG_ERROR, detail, file, is_about_file=True))

        await self._files.watch(changed, broken)

    def declared_again(self) -> ToolSelection | None:
        """Manifests were read again. The choice from now on; None where it is what it was."""
        self._files.look_again()
        chosen = self._declared.choose_again(self._usable)
        if chosen is not None:
            self._settings, self.chosen = self._declared.settings, chosen
        return chosen

    def _usable(self, settings: Settings, toolsets: DeclaredToolsets) -> ToolSelection:
        """Raises `BrokenSettings`."""
        chosen = self._choice(settings, toolsets)
        chosen.filter()
        chosen.profiles()
        return chosen

    def _choice(self, settings: Settings, toolsets: DeclaredToolsets) -> ToolSelection:
        # One that goes leaves its name: what was chosen by it is no mistake for that.
        documents = self._declared.documents
        self._resources |= {tool.name for tool in documents.tools} if documents is not None else set()
        return ToolSelection(
            settings, self._configs, toolsets, self._resources, self._program_tools, for_many=self._for_many
        )

    def _with_name_cap(self, files: UpstreamFiles) -> UpstreamFiles:
        settings = self._settings
        profile = settings.profiles.get(settings.profile)
        cap = profile.name_cap if profile is not None and profile.name_cap else settings.catalog.name_cap
        return replace(files, configs=tuple(replace(config, name_cap=cap) for config in files.configs))

    def settings_again(self, settings: Settings) -> Callable[[], ToolSelection | None]:
        """Settings were read again. What puts their choice of tools into force, and returns it if it is another one.

        Raises `BrokenSettings`.
        """
        with_profiles = self._declared.with_profiles(settings)
        chosen = self._usable(with_profiles, self._declared.toolsets)

        def apply() -> ToolSelection | None:
            is_same = settings.catalog == self._settings.catalog
            self._declared.use_settings(settings, with_profiles)
            self._settings, self.chosen = with_profiles, chosen
            return None if is_same else chosen

        return apply


def log_entry_problem(telemetry: Telemetry, problem: UpstreamProblem) -> None:
    telemetry.warning("upstream entry", name=problem.name, reason_code=problem.reason_code, problem=problem.message)


def build_upstreams(
    services: Services,
    configured: ConfiguredUpstreams,
    registry: Registry,
    *,
    instance: str,
    why_denied: Callable[[str], str],
    login_person: LoginPrompt | None,
    own_lists: OwnLists | None = None,
) -> Upstreams:
    """The upstreams of the start, with what is known of their tools from earlier processes."""
    s = services

    async def confine(options: SandboxOptions, directory: Path) -> Confined | None:
        return await s.sandbox().confine_upstream(options, directory)

    has_replicas = s.serves_http and s.shared is not None
    upstreams = Upstreams(
        configured.at_start.configs,
        registry=registry,
        state=s.state,
        telemetry=s.telemetry,
        guard=s.guard,
        problems=configured.at_start.problems,
        why_denied=why_denied,
        confine=confine,
        roots=s.directories.roots_for_upstreams,
        on_change=lambda: s.announcements.changed("goat://status"),
        logins=Logins(s.state, s.http, s.references, warn=s.telemetry.warning, person=login_person),
        instance=instance,
        on_updated=s.updates.tell,
        own_lists=own_lists,
        sharing=Sharing(services.settings.catalog.share, owned=_OwnedAmongReplicas(services) if has_replicas else None),
    )
    if has_replicas:
        services.owners = Lazy(lambda: _owners(services, upstreams, confine))
    upstreams.load_warm_catalogs()
    return upstreams


def _owners(services: Services, upstreams: Upstreams, confine: Confine) -> Owners:
    from goat_mcp.upstreams.owners.owners import Owners

    def entry(server: str) -> UpstreamConfig | None:
        return next((config for config in upstreams.configs if config.server == server), None)

    return Owners(entry, guard=services.guard, confine=confine)


@dataclass(frozen=True)
class _OwnedAmongReplicas:
    """The owners of processes, whose code the first connection loads."""

    services: Services

    def share(
        self,
        config: UpstreamConfig,
        root_of: RootOf,
        account: Callable[[], str],
        asks: Callable[[], bool],
        learn_asks: Callable[[], None],
        leaves: tuple[int, ...],
    ) -> OwnedConnection:
        from goat_mcp.upstreams.owners.owned_connection import OwnedConnection

        assert self.services.owners is not None
        return OwnedConnection(self.services.owners(), config, root_of, account, asks, learn_asks, leaves)
