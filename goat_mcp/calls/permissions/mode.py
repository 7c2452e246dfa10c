"""The permission modes, and what a mode says about a risk if no rule does (the table of design D8)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum

from goat_mcp.core.side_effect import Risk, SideEffect
from goat_mcp.core.spec import ToolSpec


class Mode(StrEnum):
    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


class Approval(StrEnum):
    """Who answers an ask that the mode raises (design D8)."""

    HOST = "host"
    ELICIT = "elicit"
    DENY = "deny"


class Effect(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


AUTO_ALLOWED = frozenset({"Read", "Glob", "Grep", "ListMcpResources", "ReadMcpResource"})
"""Never asked about; deny rules and the jail still hold. Source: Goat, "Auto-Allowed vs Permission-Gated"."""

_CHANGES_NOTHING = frozenset({SideEffect.NONE, SideEffect.READ_ONLY})


_NARROWER_FIRST = (Mode.DONT_ASK, Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.BYPASS)


def allows_more(before: Mode, wanted: Mode) -> bool:
    """Whether `wanted` allows anything that `before` does not."""
    if wanted is before:
        return False
    if wanted is Mode.PLAN:
        return before is Mode.DONT_ASK  # that denies requests to the network, which planning asks about
    return before is Mode.PLAN or _NARROWER_FIRST.index(wanted) > _NARROWER_FIRST.index(before)


def changes_nothing(spec: ToolSpec) -> bool:
    """Whether plan mode leaves the tool to `default`: its side effect and its own hints both say that nothing changes.

    A network tool changes nothing if it is not destructive and repeatable (WebFetch, not Bash).
    """
    if spec.side_effect in _CHANGES_NOTHING:
        return spec.hints.read_only
    if spec.side_effect is SideEffect.NETWORK:
        return not spec.hints.destructive and spec.hints.idempotent
    return False


def effect_by_mode(mode: Mode, spec: ToolSpec) -> Effect:
    """What `mode` says about a tool that no rule names."""
    if mode is Mode.BYPASS:
        return Effect.ALLOW
    if mode is Mode.PLAN and not _may_run_while_planning(spec):
        return Effect.DENY
    if spec.risk <= Risk.LOW:
        return Effect.ALLOW
    if mode is Mode.DONT_ASK:
        return Effect.DENY
    if mode is Mode.ACCEPT_EDITS and spec.risk is Risk.MEDIUM and spec.side_effect is SideEffect.MUTATING:
        return Effect.ALLOW if not spec.hints.open_world else Effect.ASK
    # Planning, too: what changes nothing may still tell others something, and a model may enter plan mode by itself.
    return Effect.ASK


def _may_run_while_planning(spec: ToolSpec) -> bool:
    if spec.risk in (Risk.MEDIUM, Risk.CRITICAL):
        return False
    # State a tool keeps about the work (TodoWrite) is none of the user's files; a stop or a write is.
    return spec.risk is Risk.NONE or spec.side_effect is SideEffect.NONE or changes_nothing(spec)


MODES: Mapping[str, Mode] = {mode.value.lower(): mode for mode in Mode} | {"confirm": Mode.DEFAULT}


def words_of(command: str) -> list[str]:
    """Raises `ValueError` if quotes do not close."""
    return shlex.split(command.strip().removeprefix("/"))


def setting_read(command: str) -> str | None:
    """The setting that `config KEY` reads; None for other commands."""
    words = _words(command)
    return words[1] if len(words) == 2 and words[0] == "config" else None


def mode_chosen(words: Sequence[str]) -> Mode | None:
    """The mode that `mode NAME` changes to: the one command that changes anything. None for other words, and for a
    mode that there is not."""
    return MODES.get(words[1].lower()) if len(words) == 2 and words[0] == "mode" else None


def changes_something(command: str) -> bool:
    """Whether it is a command that does; what is none of ours is refused, and changes nothing."""
    return mode_chosen(_words(command)) is not None


def _words(command: str) -> list[str]:
    try:
        return words_of(command)
    except ValueError:
        return []
