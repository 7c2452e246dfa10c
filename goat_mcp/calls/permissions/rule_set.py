"""The rules in force: what is allowed, asked about and denied, and which of them match a call or a file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from goat_mcp.calls.permissions.patterns import PathPatterns
from goat_mcp.calls.permissions.rule import (
    FILE_WRITERS,
    FILES,
    SEARCHES,
    BrokenRule,
    Call,
    CommandSpecifier,
    PathSpecifier,
    Rule,
    parse_rule,
    same_as,
)
from goat_mcp.core.spec import DECLARED_TOOLSETS, ToolSpec

if TYPE_CHECKING:  # loaded with the first rule about commands
    from goat_mcp.commands.shell.script_rules import CommandPattern

WRITES_OF_COMMANDS = ("Edit", "Write")
"""Whose rules hold for the files that a command certainly changes."""


@dataclass(frozen=True)
class RuleList:
    """The rules of one effect, found by the tool of a call: most of hundreds are never looked at."""

    rules: tuple[Rule, ...] = ()

    @cached_property
    def first_end_s(self) -> float:
        """When the first of them ends, in seconds since 1970."""
        return min((rule.until_s for rule in self.rules if rule.until_s is not None), default=math.inf)

    def at(self, now_s: float) -> RuleList:
        """Those that have not ended."""
        if now_s < self.first_end_s:
            return self
        return RuleList(tuple(rule for rule in self.rules if rule.until_s is None or now_s < rule.until_s))

    @cached_property
    def _by_tool(self) -> dict[str, list[Rule]]:
        """Rules about one tool, but for those about paths."""
        found: dict[str, list[Rule]] = {}
        for rule in self.rules:
            if rule.tool and not isinstance(rule.specifier, PathSpecifier):
                found.setdefault(rule.tool, []).append(rule)
        return found

    @cached_property
    def _paths_by_tool(self) -> dict[str, _PathRules]:
        found: dict[str, list[tuple[Rule, PathSpecifier]]] = {}
        for rule in self.rules:
            if rule.tool and isinstance(rule.specifier, PathSpecifier):
                found.setdefault(rule.tool, []).append((rule, rule.specifier))
        return {tool: _PathRules(tuple(rules)) for tool, rules in found.items()}

    @cached_property
    def _by_pattern(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if not rule.tool)

    def about(self, tool: str) -> Iterator[Rule]:
        """The rules that name this tool, but for those about paths."""
        yield from self._by_tool.get(tool, ())
        for rule in self._by_pattern:
            if rule.names(tool):
                yield rule

    def about_call(self, call: Call) -> Iterator[Rule]:
        """The rules that name a call's tool, by its canonical name or by the one that clients see."""
        yield from self.about(call.spec.rule_name)
        if call.spec.name != call.spec.rule_name:
            yield from self.about(call.spec.name)

    def about_commands(self) -> Iterator[Rule]:
        """The rules about some commands, in whatever tool they are run."""
        return (rule for rule in self._by_tool.get("Bash", ()) if isinstance(rule.specifier, CommandSpecifier))

    def against_call(self, call: Call) -> Iterator[Rule]:
        """As `about_call`, of rules that deny or ask: with those about a tool that does the same."""
        yield from self.about_call(call)
        if other := same_as(call):
            yield from self.about(other)
        if call.runs and call.spec.rule_name != "Bash":
            yield from self.about_commands()

    def about_all_files(self, *families: str) -> Iterator[Rule]:
        """The rules that are these tools' names alone: `Edit` is about all files, as `Edit(src/**)` is about some."""
        for family in families:
            for rule in self._by_tool.get(family, ()):
                if rule.specifier is None:
                    yield rule

    @cached_property
    def bind_commands_by_files(self) -> bool:
        """Whether some of the rules are about files that commands may name."""
        return any(True for _ in self.about_paths("Read", *WRITES_OF_COMMANDS)) or any(
            True for _ in self.about_all_files(*WRITES_OF_COMMANDS)
        )

    def about_paths(self, *families: str) -> Iterator[tuple[Rule, PathSpecifier]]:
        """The rules about paths under these tools' names."""
        for family in families:
            if (rules := self._paths_by_tool.get(family)) is not None:
                yield from rules.rules

    def about_path(self, path: str, roots: Sequence[str], *families: str, copies: bool = True) -> Iterator[Rule]:
        """Those of them that mean this path (see `PathPattern.matches`)."""
        for family in families:
            rules = self._paths_by_tool.get(family)
            if rules is not None and rules.all.match(path, roots):
                for rule, specifier in rules.rules:
                    if specifier.pattern.matches(path, roots, copies=copies):
                        yield rule

    def hitting(self, call: Call) -> Rule | None:
        """For deny and ask: the first rule that means the call, or some part of it."""
        for rule in self.against_call(call):
            if rule.hits(call):
                return rule
        for rule in self.about_all_files(*_families_of_all_files(call)):
            return rule
        families = _families_against(call)
        for path in call.paths:
            for rule in self.about_path(path, call.roots, *families):
                return rule
        return None


@dataclass(frozen=True)
class _PathRules:
    rules: tuple[tuple[Rule, PathSpecifier], ...]

    @cached_property
    def all(self) -> PathPatterns:
        return PathPatterns(specifier.pattern for _, specifier in self.rules)


@dataclass(frozen=True)
class RuleSet:
    """All rules in force. Order inside a list does not matter; deny beats ask beats allow."""

    allow: RuleList = field(default_factory=RuleList)
    ask: RuleList = field(default_factory=RuleList)
    deny: RuleList = field(default_factory=RuleList)
    only_commands: tuple[CommandPattern, ...] = ()
    """If there are any, no command runs that is none of these, whatever else allows it."""

    @classmethod
    def parse(cls, *, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> RuleSet:
        """Raises `BrokenRule` for the first rule that cannot be understood."""
        return cls.of(
            allow=[parse_rule(text) for text in allow],
            ask=[parse_rule(text, may_name_all=True) for text in ask],
            deny=[parse_rule(text, may_name_all=True) for text in deny],
        )

    @classmethod
    def of(cls, *, allow: Sequence[Rule] = (), ask: Sequence[Rule] = (), deny: Sequence[Rule] = ()) -> RuleSet:
        return cls(RuleList(tuple(allow)), RuleList(tuple(ask)), RuleList(tuple(deny)))

    def now(self) -> RuleSet:
        """Those that have not ended."""
        return self.at(time.time())

    def at(self, now_s: float) -> RuleSet:
        """Those that have not ended then. An end that has passed is never undone: `now` of the rest has it no more."""
        if now_s < self._first_end_s:
            return self
        return replace(self, allow=self.allow.at(now_s), ask=self.ask.at(now_s), deny=self.deny.at(now_s))

    @cached_property
    def _first_end_s(self) -> float:
        return min(self.allow.first_end_s, self.ask.first_end_s, self.deny.first_end_s)

    def allowing(self, more: Sequence[Rule]) -> RuleSet:
        """These rules and some more that allow."""
        return replace(self, allow=RuleList((*self.allow.rules, *more))) if more else self

    def denying(self, call: Call) -> Rule | None:
        """The rule that denies a call. What may not be read may not be written either, by whatever tool; and
        `Edit(...)` is about every tool that changes files."""
        if not self.deny.rules:
            return None
        return self.deny.hitting(call)

    def asking(self, call: Call) -> Rule | None:
        return self.ask.hitting(call) if self.ask.rules else None

    def denies_tool(self, spec: ToolSpec) -> bool:
        """Whether no call of this tool is let through, whatever its arguments."""
        call = Call(spec)
        found = (*self.deny.against_call(call), *self.deny.about_all_files(*_families_of_all_files(call)))
        return any(rule.specifier is None for rule in found)

    def denying_all_of(self, server: str) -> str:
        """The text of a rule that denies everything of an upstream, resources too; empty if none does."""
        return next((rule.text for rule in self.deny.rules if rule.server == server), "")


class CurrentRules(Protocol):
    """Rules that may end, or be replaced: whoever decides asks for those of this moment, and goes by what it got."""

    def now(self) -> RuleSet: ...


def _families_of_all_files(call: Call) -> tuple[str, ...]:
    """As `_families_against`, for rules without a path. A search reads all files that it finds."""
    families = _families_against(call)
    return (*families, "Read") if call.spec.rule_name in SEARCHES else families


def _families_against(call: Call) -> tuple[str, ...]:
    """As `families_of`, for deny and ask. Files that a declared tool reads or writes are files: `Read(...)` is about
    them, too, and `Edit(...)` and `Write(...)` about those that it writes."""
    own = families_of(call.spec.rule_name, reading=True)
    if call.spec.toolset in DECLARED_TOOLSETS and call.paths:
        return (*own, "Edit", "Write", "Read") if call.writes else (*own, "Read")
    return own


def families_of(tool: str, *, reading: bool = False) -> tuple[str, ...]:
    """Under which tools' names rules about paths speak of this one: `Edit(...)` is about all that change files, and
    where it is about `reading`, `Read(...)` about all that write them, too."""
    names = (tool, FILES[tool]) if tool in FILES else (tool,)
    if tool not in FILE_WRITERS:
        return names
    edits = names if tool == "Edit" else (*names, "Edit")
    return (*edits, "Read") if reading else edits


_PATHS = ("file_path", "notebook_path", "path")


class RuleConditions:
    """Implements `hooks.command.RuleMatch`. `roots` are the workspace's directories, `real_path` follows links.

    As with a rule that asks, some part of a call is enough. If a script cannot be seen through, it is taken to be
    meant: so does Claude Code, whose hooks say `if` in this way.
    """

    def __init__(self, roots: Callable[[], Sequence[str]], real_path: Callable[[str], str]) -> None:
        self._roots = roots
        self._real_path = real_path
        self._parsed: Callable[[str], Rule] = lru_cache(maxsize=1000)(_parsed)

    def __call__(self, rule: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        """Raises `BrokenRule`."""
        parsed = self._parsed(rule)
        is_about_files = parsed.specifier is None or isinstance(parsed.specifier, PathSpecifier)
        is_of_family = is_about_files and parsed.tool in families_of(spec.rule_name)
        if not parsed.names(spec.rule_name) and not is_of_family:
            return False
        asked = tuple(str(arguments[name]) for name in _PATHS if name in arguments)
        real = tuple(map(self._real_path, asked))
        call = Call(spec, arguments, asked, real, roots=tuple(self._roots()))
        if isinstance(parsed.specifier, CommandSpecifier) and any(one.hidden for one in call.scripts):
            return True
        return parsed.hits(call)


def _parsed(text: str) -> Rule:
    rule = parse_rule(text, may_name_all=True)
    if rule.until_s is not None:
        raise BrokenRule(f"rule {text[:200]!r}: a condition has no end; leave out `until`")
    return rule


class FileRules:
    """What the rules say of a file, for the workspace, a search, a sandbox. Calls are decided elsewhere.

    `roots` are the workspace's directories at the time of the question.
    """

    def __init__(self, rules: CurrentRules, roots: Callable[[], Sequence[Path]]) -> None:
        self._rules = rules
        self._roots = roots

    def hide_some(self) -> bool:
        """Whether some files may not be read, or not without asking: then each that a search found is looked at."""
        rules = self._rules.now()
        return any(True for listed in (rules.deny, rules.ask) for _ in listed.about_paths("Read"))

    def keep_some(self) -> bool:
        """Whether commands may not change some files."""
        return any(True for _ in self._rules.now().deny.about_paths("Read", *WRITES_OF_COMMANDS))

    def why_denied(self, path: str, writes: bool) -> str:
        """The rule that forbids to read or write a file; empty if none does."""
        deny = self._rules.now().deny
        if not deny.rules:
            return ""
        found = deny.about_path(path, self._root_texts(), *(("Read", "Edit") if writes else ("Read",)))
        return next((rule.text for rule in found), "")

    def hides(self, path: str) -> bool:
        """Whether a search leaves the file out: nobody is asked about each of the files it finds."""
        roots, rules = self._root_texts(), self._rules.now()
        return any(True for one in (rules.deny, rules.ask) for _ in one.about_path(path, roots, "Read"))

    def forbids_to_read(self, path: str) -> bool:
        """Whether nobody may be asked for it."""
        return bool(self.why_denied(path, writes=False))

    def forbids_commands_to_write(self, path: str) -> bool:
        """Whether no command may change this file, or what is in this directory."""
        roots, families = self._root_texts(), ("Read", *WRITES_OF_COMMANDS)
        deny = self._rules.now().deny
        return any(True for one in (path, f"{path}/_") for _ in deny.about_path(one, roots, *families))

    def never_read(self) -> list[Path]:
        """The files that deny rules name without a wildcard."""
        return self._denied_exactly("Read")

    def never_written(self) -> list[Path]:
        """As `never_read`, of what no command may change."""
        return self._denied_exactly("Read", *WRITES_OF_COMMANDS)

    def _denied_exactly(self, *families: str) -> list[Path]:
        found = self._rules.now().deny.about_paths(*families)
        named = [specifier.pattern for _, specifier in found if specifier.pattern.is_exact]
        return [
            Path(f"{anchor.rstrip('/')}/{pattern.relative}")
            for pattern in named
            for anchor in ((pattern.anchor,) if pattern.anchor else self._root_texts())
        ]

    def _root_texts(self) -> tuple[str, ...]:
        return tuple(map(str, self._roots()))
