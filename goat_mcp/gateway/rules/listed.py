"""The permission rules that hold here, numbered, and where each of them stands."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.remembered import FOLDER, RememberedRule, RememberedRules
from goat_mcp.calls.permissions.rule import Rule
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.gateway.build.working_directories import scope_of
from goat_mcp.gateway.rules.words import at
from goat_mcp.settings.settings import Settings
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning


@dataclass(frozen=True)
class ListedRule:
    """`file` is the settings file it stands in, `remembered` what a person answered; a flag has neither."""

    number: int
    effect: Effect
    rule: Rule
    origin: str
    file: Path | None = None
    remembered: RememberedRule | None = None

    @property
    def has_ended(self) -> bool:
        return self.rule.until_s is not None and self.rule.until_s <= time.time()

    def fields(self) -> dict[str, Any]:
        """For `--json`."""
        facts: dict[str, Any] = {
            "number": self.number,
            "effect": self.effect.value,
            "rule": self.rule.text,
            "origin": self.origin,
        }
        if self.rule.until_s is not None:
            until = datetime.fromtimestamp(self.rule.until_s, UTC).isoformat().replace("+00:00", "Z")
            facts |= {"until": until, "has_ended": self.has_ended}
        return facts if self.remembered is None else facts | remembered_fields(self.remembered)

    def row(self) -> list[str]:
        """For a table: number, effect, rule, where."""
        where = _short(self.origin) if self.remembered is None else _where(self.remembered)
        if self.has_ended:
            assert self.rule.until_s is not None
            where = f"ended {at(self.rule.until_s)}; {where}"
        return [str(self.number), self.effect.value, self.rule.text, where]


def listed_rules(settings: Settings, warn: Warn = no_warning) -> list[ListedRule]:
    """Deny first; those that a person wants remembered come last. Raises `ToolError`."""
    found = [*configured_rules(settings), *map(_as_listed, remembered_here(remembered_rules(settings.workspace, warn)))]
    return [
        ListedRule(number, one.effect, one.rule, one.origin, one.file, one.remembered)
        for number, one in enumerate(found, start=1)
    ]


def remembered_rules(workspace: Sequence[Path], warn: Warn) -> RememberedRules:
    """Those of a workspace; `warn` hears of a line that is left out."""
    return RememberedRules(StateDirectory.default(), scope_of(workspace or (Path.cwd(),)), warn)


def remembered_anywhere(state: StateDirectory, warn: Warn) -> Iterator[tuple[str, RememberedRule]]:
    """Those of every workspace of the user, each with the short name of its workspace (`scope_of`). A file that cannot
    be read is reported to `warn`."""
    for path in sorted((state.path / FOLDER).glob("*.jsonl")):
        try:
            for one in RememberedRules(state, path.stem, warn).oldest_first():
                yield path.stem, one
        except OSError as problem:
            warn("remembered rules are not used", path=str(path), problem=problem.strerror or str(problem))


def remembered_here(remembered: RememberedRules) -> Sequence[RememberedRule]:
    """Raises `ToolError` if they are there and cannot be read."""
    try:
        return remembered.oldest_first()
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise ToolError(
            ErrorCode.IO,
            f"{remembered.path} is not used: {problem.strerror or problem}",
            "Take it away, or make it yours alone.",
        ) from None


def remembered_fields(one: RememberedRule) -> dict[str, Any]:
    return {
        "effect": "allow",
        "rule": one.rule.text,
        "origin": one.rule.origin,
        "id": one.id,
        "principal": one.principal,
        "directory": one.rule.directory,
        "remembered_at_s": one.at_s,
    }


def place_of(one: RememberedRule) -> str:
    """For whom and where it held, if that is not everywhere and for you."""
    whom = f" for {one.principal}" if one.principal != "local" else ""
    return whom + (f" in {one.rule.directory}" if one.rule.directory else "")


def _where(one: RememberedRule) -> str:
    return f"remembered {at(one.at_s)} as {one.id}{place_of(one)}"


def _short(origin: str) -> str:
    """A place as people write it: `~/.config/...`."""
    home = f"{os.path.expanduser('~')}/"  # noqa: PTH111  # `Path.home` raises if there is none
    return f"~/{origin.removeprefix(home)}" if home != "/" and origin.startswith(home) else origin


def _as_listed(one: RememberedRule) -> ListedRule:
    return ListedRule(0, Effect.ALLOW, one.rule, one.rule.origin, remembered=one)


def configured_rules(settings: Settings) -> Iterator[ListedRule]:
    """Those of settings and of Claude Code's files, deny first."""
    from goat_mcp.gateway.build.extensions import claude_settings
    from goat_mcp.gateway.build.rule_loading import file_of_rule, origin_of, rules_of

    listed = rules_of(settings, claude_settings(settings))
    for effect, found in ((Effect.DENY, listed.deny), (Effect.ASK, listed.ask), (Effect.ALLOW, listed.allow)):
        for rule in found.rules:
            origin = origin_of(settings, Decision(effect, "", rule=rule))
            is_ours = not rule.origin and not rule.blocks
            yield ListedRule(0, effect, rule, origin, file_of_rule(settings, effect, rule.text) if is_ours else None)
