"""What in a gateway follows settings that are read again while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from goat_mcp.gateway.build.extensions import FollowedClaudeFiles
from goat_mcp.gateway.build.program_tools import ProgramTools
from goat_mcp.gateway.build.rule_loading import rules_of
from goat_mcp.gateway.build.services import Services
from goat_mcp.gateway.build.tools import ToolSelection
from goat_mcp.gateway.build.upstreams import ConfiguredUpstreams
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.watched_settings import WatchedSettings

if TYPE_CHECKING:  # loaded if the user names such a file
    from goat_mcp.settings.claude import ClaudeSettings


def watched_settings(
    settings: Settings,
    services: Services,
    configured: ConfiguredUpstreams,
    program_tools: ProgramTools,
    at_start: Sequence[ClaudeSettings],
    use_choice: Callable[[ToolSelection], None],
    denials_changed: Callable[[], None],
) -> WatchedSettings:
    """`at_start` are Claude Code's files as they were read. `use_choice` puts a new choice of tools into force.
    `denials_changed`: clients may see more or less now."""

    def choose_again(now: Settings) -> Callable[[], None]:
        choose = configured.settings_again(now)

        def apply() -> None:
            if (chosen := choose()) is not None:
                use_choice(chosen)

        return apply

    def decide_again(now: Settings) -> Callable[[], None]:
        files, problems = claude_files.read(now)
        rules = rules_of(now, files, program_tools)

        def apply() -> None:
            watched.file_problems = problems
            watched.also_waiting = [f"the hooks of {path}" for path in claude_files.with_other_hooks(files)]
            before = services.rules.now()
            services.rules.replace(rules)
            services.modes.use(now.mode)
            if [rule.text for rule in before.deny.rules] != [rule.text for rule in rules.deny.rules]:
                denials_changed()

        return apply

    def show_again(now: Settings) -> Callable[[], None]:
        return lambda: services.config_view.use(now)

    watched = WatchedSettings(settings, services.directories.tools_may_write)
    claude_files = FollowedClaudeFiles(
        settings, at_start, watched.is_open, lambda file: rules_of(Settings(), [file], program_tools)
    )
    watched.follow(choose_again)
    watched.follow(decide_again)
    watched.follow(show_again)
    return watched
