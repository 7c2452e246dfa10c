"""The permission rules that settings hold, and where a user wrote each: looked up when somebody wants to know."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.rule import BrokenRule, CommandSpecifier, Rule, parse_rule
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.gateway.build.program_tools import ProgramTools
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.file_state import FileState, file_state

if TYPE_CHECKING:  # loaded where somebody has written such rules
    from goat_mcp.commands.shell.script_rules import CommandPattern
    from goat_mcp.settings.claude import ClaudeSettings

_BLOCKED = "bash.blocked: "
_SEARCH_RULE = re.compile(r"\s*(?:Grep|Glob)\(")
"""Claude Code takes paths in these; here what may not be read is not found, so they are about reading."""


def rules_of(
    settings: Settings, imported: Sequence[ClaudeSettings] = (), program_tools: ProgramTools | None = None
) -> RuleSet:
    """All rules in force, those of Claude Code's files too, and one for each of `program_tools` that is allowed.

    Raises `BrokenSettings` naming the rule and where it is written (R-PERM-7).
    """
    listed = settings.permissions
    others = program_tools.names() if program_tools is not None else ()
    allowed = program_tools.allowed if program_tools is not None else ()
    rules = RuleSet.of(
        allow=[
            *_parsed(settings, Effect.ALLOW, listed.allow, others),
            *_imported(imported, Effect.ALLOW, others),
            *(Rule(name, tool=name, origin="the program") for name in allowed),
        ],
        ask=[*_parsed(settings, Effect.ASK, listed.ask, others), *_imported(imported, Effect.ASK, others)],
        deny=[
            *_parsed(settings, Effect.DENY, listed.deny, others),
            *_blocked(settings.bash.blocked),
            *_imported(imported, Effect.DENY, others),
        ],
    )
    if not settings.bash.allowed:
        return rules
    return replace(rules, only_commands=tuple(_command("allowed", text) for text in settings.bash.allowed))


def _imported(files: Sequence[ClaudeSettings], effect: Effect, others: Collection[str]) -> list[Rule]:
    rules: list[Rule] = []
    for file in files:
        # `/path` is relative to the project that the file belongs to, as in Claude Code.
        project = file.path.parent.parent if file.path.parent.name == ".claude" else file.path.parent
        for listed in {Effect.ALLOW: file.allow, Effect.ASK: file.ask, Effect.DENY: file.deny}[effect]:
            try:
                text = _SEARCH_RULE.sub("Read(", listed.text)
                may_name_all = effect is not Effect.ALLOW
                rule = parse_rule(
                    text, origin=listed.origin, base=str(project), may_name_all=may_name_all, others=others
                )
            except BrokenRule as broken:
                raise BrokenSettings(str(broken), "Fix it, or do not name the file in claude_settings.") from None
            rules.append(rule)
    return rules


def _blocked(commands: Sequence[str]) -> list[Rule]:
    return [
        Rule(f"{_BLOCKED}{text}", tool="Bash", specifier=CommandSpecifier(_command("blocked", text)), blocks=True)
        for text in commands
    ]


def _command(key: str, text: str) -> CommandPattern:
    """A command by the words it begins with."""
    from goat_mcp.commands.shell.script_rules import CommandPattern

    try:
        return CommandPattern.parse(text if "*" in text else f"{text} *")
    except ValueError as broken:
        raise BrokenSettings(f"bash.{key}: {broken}", "Write the words a command begins with, e.g. git push.") from None


def _parsed(settings: Settings, effect: Effect, texts: Sequence[str], others: Collection[str]) -> list[Rule]:
    rules: list[Rule] = []
    for text in texts:
        try:
            rules.append(parse_rule(text, may_name_all=effect is not Effect.ALLOW, others=others))
        except BrokenRule as broken:
            raise BrokenSettings(
                f"permissions.{effect.value}, {origin_of_rule(settings, effect, text)}: {broken}",
                "Fix the rule and start again.",
            ) from None
    return rules


def origin_of(settings: Settings, decision: Decision) -> str:
    """Where what made a decision stands; empty where it stands nowhere, as for a protected path."""
    if decision.rule is not None and not decision.rule.text.startswith(_BLOCKED):
        return decision.rule.origin or origin_of_rule(settings, decision.effect, decision.rule.text)
    if decision.rule is not None:
        return _origin(settings, "bash.blocked", decision.rule.text.removeprefix(_BLOCKED))
    if decision.reason == "bash.allowed":
        return _origin(settings, "bash.allowed")
    if decision.reason.startswith("mode ") and settings.source_of("mode") != "default":
        return _origin(settings, "mode")
    return ""


def origin_of_rule(settings: Settings, effect: Effect, text: str) -> str:
    """`FILE:LINE`, or in words where it stands in no file."""
    return _origin(settings, f"permissions.{effect.value}", text)


def file_of_rule(settings: Settings, effect: Effect, text: str) -> Path | None:
    """The settings file that a rule stands in; None for one of Claude Code's, a flag or a variable."""
    return next((file for file, _ in _places(settings, f"permissions.{effect.value}", text)), None)


def _places(settings: Settings, key: str, text: str | None) -> Iterator[tuple[Path, int]]:
    for file in settings.config_files:
        if (line := _line_of(file, key.split("."), text)) is not None:
            yield file, line


def _origin(settings: Settings, key: str, text: str | None = None) -> str:
    for file, line in _places(settings, key, text):
        return f"{file}:{line}"
    source = settings.source_of(key)
    variable = f"GOAT_MCP_{key.upper().replace('.', '__')}"
    in_words = {"environment": f"the environment variable {variable}", "flag": "the command line"}
    return in_words.get(source, "the settings")


def _line_of(file: Path, keys: Sequence[str], text: str | None) -> int | None:
    import yaml

    node = _composed(file, file_state(file))
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            return None
        found = [value for name, value in node.value if name.value == key]
        if not found:
            return None
        node = found[-1]
    if text is None:
        return node.start_mark.line + 1
    entries: list[Any] = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for entry in entries:
        if isinstance(entry, yaml.ScalarNode) and entry.value.strip() == text.strip():
            return entry.start_mark.line + 1
    return None


@lru_cache(maxsize=8)
def _composed(file: Path, state: FileState | None) -> Any:
    """The tree of a file as it is in this state; None if it has none. Composing takes longer than all of the rest."""
    import yaml

    try:
        return cast("Any", yaml).compose(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
