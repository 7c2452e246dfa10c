"""A tool of an upstream as a `Tool` of ours: its entry passes to clients as it came, its calls go to the upstream.

Names that clients were shown instead of the upstream's own are put back (SCH-2). Then arguments are checked against the
schema that was listed, unless the entry switches that off. How far the upstream's claims are trusted is decided here,
too: class, signals, hints (RSK-1 to RSK-4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, cast

from goat_mcp.catalog.schemas.parameter_names import may_hold_renamed, original_arguments, renamed
from goat_mcp.catalog.schemas.references import Local
from goat_mcp.catalog.schemas.root_schema import ROOT_RULES, plain_root
from goat_mcp.core.context import ToolContext
from goat_mcp.core.effects import CHANGES, DELETES, MAY_CHANGE, NETWORK, PROGRAMS, READS
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX, exposed_name
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access, ChecksInput, OwnTool
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.config.entry import ToolDocs, UpstreamConfig
from goat_mcp.upstreams.listing.input_check import InputCheck

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
_TOUCHES_NOTHING = Access()


class Assessment(NamedTuple):
    """What policy decides on and what clients see. `claimed` is the class of the upstream's own hints."""

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
    if not _DESTROYS.isdisjoint(word.lower() for word in _WORDS.findall(name)):
        return Risk.CRITICAL
    if _says_it_changes(name) or not _CODE_FIELDS.isdisjoint(map(str.lower, _fields(input_schema))):
        return Risk.HIGH
    return Risk.NONE


def _says_it_changes(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    # `get_run` and `list_commits` read; a destructive word counts wherever it stands.
    return not _CHANGES.isdisjoint(words) and words[0] not in _READS


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


TOOLSET = "upstream"


@dataclass(frozen=True, kw_only=True)
class UpstreamSpec(ToolSpec):
    """`entry` is what clients see: the upstream's own, under the exposed name and with the published hints."""

    native_name: str
    prefix: str
    entry: Mapping[str, Any]
    claimed_risk: Risk
    effective_risk: Risk
    pin: str = ""
    """Hash of the definition that `entry` was made of, as `goat.lock` has it."""

    @property
    def effects(self) -> tuple[str, ...]:
        """As its own hints have it, and what its name and its fields give away (RSK-2)."""
        stated: Mapping[str, Any] = self.entry.get("annotations") or _NOTHING_STATED
        if self.effective_risk is Risk.CRITICAL:
            words = [DELETES]
        elif self.effective_risk <= Risk.LOW:
            words = [READS]
        else:
            is_plain = _says_it_changes(self.native_name) or stated.get("readOnlyHint") is False
            words = [CHANGES if is_plain else MAY_CHANGE]
        if not _CODE_FIELDS.isdisjoint(map(str.lower, _fields(self.input_schema))):
            words.append(PROGRAMS)
        if stated.get("openWorldHint") is True:
            words.append(NETWORK)
        return tuple(words)

    @property
    def warnings(self) -> tuple[str, ...]:
        from goat_mcp.upstreams.listing.suspicious_texts import why_suspicious  # for who is asked, not for a start

        server = self.canonical_name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0]
        return why_suspicious(self.entry, server)

    def under_cap(self, name_cap: int) -> UpstreamSpec:
        server = self.canonical_name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0]
        name = exposed_name(self.prefix, self.native_name, server=server, cap=name_cap)
        return self if name == self.name else replace(self, name=name, entry={**self.entry, "name": name})

    def wire(self) -> dict[str, Any]:
        return dict(self.entry)


class CallRelay(Protocol):
    """Where calls of an upstream's tools go."""

    def admit(self, spec: UpstreamSpec) -> None:
        """Raises `ToolError(QUARANTINED)` for a tool that may not be called as it is now. Asks nobody."""
        ...

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult: ...


@dataclass(frozen=True)
class UpstreamTool(ChecksInput, OwnTool):
    """One proxied tool."""

    spec: UpstreamSpec
    relay: CallRelay
    is_checked: bool = True

    def validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self.relay.admit(self.spec)
        if not may_hold_renamed(arguments):
            return arguments
        return original_arguments(arguments, self._new_names) if self._new_names else arguments

    async def checked(self, input: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._check.checked(input) if self.is_checked else input

    @cached_property
    def _check(self) -> InputCheck:
        return InputCheck(self.spec.input_schema)

    @cached_property
    def _new_names(self) -> Mapping[str, str]:
        return renamed(self.spec.input_schema)

    def access(self, input: Mapping[str, Any]) -> Access:
        """Nothing: an upstream's tools never wait for ours, its own cap bounds them."""
        return _TOUCHES_NOTHING

    async def execute(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return await self.relay.call(self.spec, input, ctx)


_NO_DOCS = ToolDocs()


def upstream_tool(
    config: UpstreamConfig, entry: Mapping[str, Any], relay: CallRelay, pin: str = "", *, is_plain: bool = False
) -> UpstreamTool:
    """Build the tool from a usable entry. Cheap: 50 upstreams of twenty tools are built at every start.

    `is_plain`: it is known that every host takes the entry's schemas as they are.
    """
    native: str = entry["name"]
    name = exposed_name(config.prefix, native, server=config.server, cap=config.name_cap)
    annotations: Mapping[str, Any] | None = entry.get("annotations")
    schema = entry["inputSchema"]
    risk = assess(native, schema, annotations, trusted=config.trust_annotations)
    docs = config.docs.get(native, _NO_DOCS)
    published = {**entry, "name": name}
    if risk.annotations is not annotations:
        published["annotations"] = risk.annotations
    return UpstreamTool(
        UpstreamSpec(
            name=name,
            title=entry.get("title")
            or (annotations or {}).get("title")
            or (native if native.isprintable() and make_visible(native) is native else name),
            description=entry.get("description") or "",
            input_schema=schema,
            output_schema=entry.get("outputSchema"),
            side_effect=risk.side_effect,
            toolset=TOOLSET,
            risk=risk.decision_risk,
            hints=risk.hints,
            meta=entry.get("_meta") or {},
            canonical_name=f"{UPSTREAM_PREFIX}{config.server}{SEPARATOR}{native}",
            native_name=native,
            prefix=config.prefix,
            entry=published,
            claimed_risk=risk.claimed,
            effective_risk=risk.effective,
            pin=pin,
            is_plain=is_plain,
            long_doc=docs.long,
            examples=docs.examples,
        ),
        relay,
        config.input_check != "off",
    )
