"""How far to trust what an upstream says of its tools: claimed class, signals, published hints (RSK-1 to RSK-4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from goat_mcp.catalog.schemas.references import Local
from goat_mcp.catalog.schemas.root import ROOT_RULES, plain_root
from goat_mcp.core.side_effect import Hints, Risk, SideEffect

_READS = frozenset({"get", "list", "read", "search", "find", "fetch", "show", "describe", "count", "view", "query"})
_DESTROYS = frozenset(
    {
        *("delete", "del", "remove", "rm", "drop", "destroy", "purge", "erase", "wipe", "truncate", "reset", "revoke"),
        *("terminate", "kill", "uninstall", "overwrite", "unlink", "prune", "clear", "cancel", "ban"),
    }
)
_CHANGES = frozenset(
    {
        *("create", "write", "update", "edit", "set", "put", "post", "patch", "insert", "add", "append", "send"),
        *("publish", "push", "merge", "commit", "move", "rename", "copy", "upload", "execute", "exec", "run", "eval"),
        *("install", "deploy", "start", "stop", "restart", "enable", "disable", "approve", "assign", "invite", "pay"),
        *("transfer", "buy", "submit", "apply", "import", "sync", "mutate", "modify", "replace", "save", "grant"),
    }
)
_CODE_FIELDS = frozenset({"command", "cmd", "script", "code", "shell"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SIDE_EFFECTS = {Risk.LOW: SideEffect.READ_ONLY, Risk.CRITICAL: SideEffect.SPAWNS}
_NOTHING_STATED: Mapping[str, Any] = {}


class Assessment(NamedTuple):
    """What policy decides on and what clients are told. `claimed` is the class of the upstream's own hints."""

    claimed: Risk
    effective: Risk
    side_effect: SideEffect
    hints: Hints
    annotations: Mapping[str, Any] | None
    decision_risk: Risk


def claimed_risk(annotations: Mapping[str, Any]) -> Risk:
    """Goat's table: read-only is low, destructive critical, neither high, both critical."""
    if annotations.get("destructiveHint") is True:
        return Risk.CRITICAL
    return Risk.LOW if annotations.get("readOnlyHint") is True else Risk.HIGH


def signalled_risk(name: str, input_schema: Mapping[str, Any]) -> Risk:
    """What the name's words and the input's fields give away."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not _DESTROYS.isdisjoint(words):
        return Risk.CRITICAL
    # `get_run` and `list_commits` read; a destructive word counts wherever it stands.
    changes = not _CHANGES.isdisjoint(words) and words[0] not in _READS
    if changes or not _CODE_FIELDS.isdisjoint(map(str.lower, _fields(input_schema))):
        return Risk.HIGH
    return Risk.NONE


def _fields(input_schema: Mapping[str, Any]) -> Iterable[str]:
    """The names of all parameters, those in branches of the root too."""
    if ROOT_RULES.isdisjoint(input_schema):
        properties = input_schema.get("properties")
        return cast("dict[str, Any]", properties) if isinstance(properties, dict) else ()
    folded, _ = plain_root(input_schema, Local(input_schema))
    return folded.get("properties", ())


def assess(
    name: str, input_schema: Mapping[str, Any], annotations: Mapping[str, Any] | None, *, trusted: bool
) -> Assessment:
    """`trusted`: the operator vouches for the upstream's hints (`trust_annotations: true`)."""
    claimed = claimed_risk(annotations or _NOTHING_STATED)
    effective = claimed if trusted else max(claimed, signalled_risk(name, input_schema))
    published = _published(annotations, effective)
    shown = published or _NOTHING_STATED
    # What is published of them are truth values; missing ones are as the protocol has them.
    hints = Hints(
        read_only=shown.get("readOnlyHint", False),
        destructive=shown.get("destructiveHint", True),
        idempotent=shown.get("idempotentHint", False),
        open_world=shown.get("openWorldHint", True),
    )
    side_effect = _SIDE_EFFECTS.get(effective, SideEffect.NETWORK)
    decision = effective
    if effective is Risk.LOW and not trusted:
        # A claim alone never lets a call through unasked (RSK-3); the hints stay as they were claimed.
        decision, side_effect = Risk.MEDIUM, SideEffect.NETWORK
    return Assessment(claimed, effective, side_effect, hints, published, decision)


def _published(annotations: Mapping[str, Any] | None, effective: Risk) -> Mapping[str, Any] | None:
    """The hints as given, but for those that promise less than the effective risk. Missing ones stay missing."""
    if annotations is None:
        return None
    # A hint that is no truth value says nothing; a client's lenient reader would take "no" for true.
    published = {
        name: value for name, value in annotations.items() if not name.endswith("Hint") or isinstance(value, bool)
    }
    if effective > Risk.LOW and published.get("readOnlyHint") is True:
        published["readOnlyHint"] = False
    if effective is Risk.CRITICAL and published.get("destructiveHint") is False:
        published["destructiveHint"] = True
    return published if published != annotations else annotations
