"""One rule of a user: the tool it is about, and the pattern in brackets that says which calls of it.

`hits`: some part of a call matches, which is enough to deny or ask. `covers`: all of it does, which allowing needs.
Several allow rules may cover one script together (see `decide`). A rule that is not understood stops the start
(R-PERM-7): one that is silently ignored protects nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from goat_mcp.calls.permissions.patterns import PathPattern, parse_path_pattern, text_pattern
from goat_mcp.calls.permissions.rule_end import split_end
from goat_mcp.catalog.builtin_contracts import builtin_names, names_of_ours
from goat_mcp.core.names import (
    SEPARATOR,
    TOOL_ALIASES,
    UPSTREAM_PREFIX,
    InvalidName,
    split_name,
)
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.web.http.domains import NotAHost, ascii_host, host_is_in_domain

if TYPE_CHECKING:  # loaded with the first rule about commands
    from goat_mcp.commands.shell.script_parsing import ShellScript
    from goat_mcp.commands.shell.script_rules import CommandPattern


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Call:
    """Paths are absolute. `asked` are those the call names, before links are followed; `reads` and `writes` the real
    ones. `roots` are the workspace's directories, which relative patterns speak of. `directory` is where a command
    would begin. `runs` is shell text that it runs beside its `command` (see `Access`). `definition` gives what stands
    for all that would run, for whoever keeps a decision about it."""

    spec: ToolSpec
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    directory: str = ""
    runs: tuple[str, ...] = ()
    definition: Callable[[], str] = field(default=str, compare=False)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every path it names and every file it touches: a deny rule may mean any of them (R-FILE-5)."""
        return tuple(dict.fromkeys((*self.asked, *self.reads, *self.writes)))

    @cached_property
    def script(self) -> ShellScript:
        """The command of a Bash call, taken apart: for rules that allow, which mean no call with variables of its
        own."""
        from goat_mcp.commands.shell.script_parsing import read_script

        return read_script(self._command)

    @cached_property
    def scripts(self) -> tuple[ShellScript, ...]:
        """All the shell text that would run, taken apart, for rules that deny or ask. Variables of the call's own
        count as exported by it (R-SHELL-5b)."""
        own = (self._command,) if self.spec.rule_name == "Bash" else ()
        if not own and not self.runs:
            return ()
        if not self.exports and not self.runs:
            return (self.script,)
        from goat_mcp.commands.shell.script_parsing import read_script

        return tuple(read_script(self.exports + text) for text in (*own, *self.runs))

    @cached_property
    def exports(self) -> str:
        """The line that sets the variables of the argument `env`; empty if there are none."""
        variables: Any = self.arguments.get("env")
        if not isinstance(variables, Mapping) or not variables:
            return ""
        import shlex

        pairs = cast("Mapping[str, Any]", variables).items()
        # What is no variable's name is refused before anything runs.
        named = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in pairs if _NAME.fullmatch(name))
        return f"export {named}\n" if named else ""

    @property
    def _command(self) -> str:
        return str(self.arguments.get("command", ""))


SEARCHES = frozenset({"Glob", "Grep"})
FILE_WRITERS = frozenset({"Edit", "Write", "NotebookEdit", "file-system__write"})
REQUESTS = {"http-fetch__get": "WebFetch", "http-fetch__post": "WebFetch"}
"""Tools that ask servers by a URL of the caller's, and the tool whose denying and asking rules hold for them, too: who
may not fetch from a domain may not do it by another name. Allowing WebFetch allows no headers and no bodies."""
FILES = {"file-system__read": "Read", "file-system__write": "Write"}
"""Tools that do what a built-in one does with files: its rules, also about paths, hold for them."""
NOTES = "memento__note"
OWN_COMMANDS = "goa_command__run"
_SAME_AS = {**REQUESTS, **FILES}
_ARGUMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*):(.*)\Z", re.DOTALL)
_MAX_PATTERN_CHARS = 4096


def same_as(call: Call) -> str:
    """The tool whose denying and asking rules hold for a call, too; empty if there is none."""
    if call.spec.rule_name == NOTES:
        return "Write" if call.writes else "Read" if call.reads else ""
    if call.spec.rule_name == OWN_COMMANDS:
        return "Config" if setting_read_by(call) is not None else ""
    return _SAME_AS.get(call.spec.rule_name, "")


def setting_read_by(call: Call) -> str | None:
    """The setting that a command of ours reads; None if it is none, or another one."""
    command = call.arguments.get("command") if call.spec.rule_name == OWN_COMMANDS else None
    if not isinstance(command, str):
        return None
    from goat_mcp.calls.permissions.mode import setting_read

    return setting_read(command)


class Specifier(Protocol):
    def hits(self, call: Call) -> bool: ...

    def covers(self, call: Call) -> bool: ...


@dataclass(frozen=True)
class PathSpecifier:
    """`Read(./secrets/**)`, `Edit(src/**)`."""

    pattern: PathPattern

    def hits(self, call: Call) -> bool:
        return any(self.pattern.matches(path, call.roots) for path in call.paths)

    def covers(self, call: Call) -> bool:
        return bool(call.paths) and all(self.pattern.matches(path, call.roots, copies=False) for path in call.paths)


@dataclass(frozen=True)
class CommandSpecifier:
    """`Bash(npm run *)`."""

    pattern: CommandPattern

    def hits(self, call: Call) -> bool:
        from goat_mcp.commands.shell.script_rules import denied_by

        return any(denied_by(script, self.pattern) for script in call.scripts)

    def covers(self, call: Call) -> bool:
        from goat_mcp.commands.shell.script_rules import allowed_by

        # What a command means depends on its environment (PATH, GIT_DIR): rules speak of the user's own only.
        return not call.arguments.get("env") and allowed_by(call.script, (self.pattern,)) == ""

    def why_hit(self, call: Call) -> str:
        """Why a call is hit that has no such command; empty if it has."""
        from goat_mcp.commands.shell.script_rules import why_denied

        return next((why for script in call.scripts if (why := why_denied(script, self.pattern))), "")


@dataclass(frozen=True)
class DomainSpecifier:
    """`WebFetch(domain:example.org)` with all below it; `domain:*.example.org` only what is below (R-NET-8)."""

    domain: str
    only_below: bool

    def hits(self, call: Call) -> bool:
        host = _host(call.arguments.get("url"))
        if not host_is_in_domain(host, self.domain):
            return False
        return not self.only_below or not host_is_in_domain(self.domain, host)

    def covers(self, call: Call) -> bool:
        return self.hits(call)


@dataclass(frozen=True)
class ArgumentSpecifier:
    """`mcp__github__create_issue(repo:org/*)`: an argument by its name (`a.b` for one inside another), `*` for any
    text. Of a list every entry has to fit to be covered, and one to be hit."""

    name: str
    _is_match: Callable[[str], object]
    default: str | None = None

    def hits(self, call: Call) -> bool:
        return any(self._is_match(text) for text in self._texts(call))

    def covers(self, call: Call) -> bool:
        texts = self._texts(call)
        return bool(texts) and all(self._is_match(text) for text in texts)

    def _texts(self, call: Call) -> Sequence[str]:
        values = list(_values(call.arguments, self.name))
        if self.name == "setting" and (setting := setting_read_by(call)) is not None:
            values.append(setting)  # for `Config(setting:...)`
        if not values and self.default is not None:
            return (self.default,)
        return [_as_text(one) for one in values]


def parse_specifier(tool: str, text: str, base: str = "") -> Specifier:
    """What `text` means for a rule about `tool`. Raises `ValueError` with what is wrong and what to write."""
    if len(text) > _MAX_PATTERN_CHARS:
        raise ValueError(f"the pattern is over {_MAX_PATTERN_CHARS} characters long")
    if tool == "Bash":
        from goat_mcp.commands.shell.script_rules import CommandPattern

        return CommandSpecifier(CommandPattern.parse(text))
    if tool in SEARCHES:
        raise ValueError(f"{tool} takes no path; write Read({text}): what may not be read is not found either")
    if tool in ("Read", *FILES) or tool in FILE_WRITERS:
        if tool in FILES and text.startswith("path:"):
            raise ValueError(f"{tool} takes a path alone; write {tool}({text.removeprefix('path:').strip()})")
        return PathSpecifier(parse_path_pattern(text, base))
    if tool == "WebFetch" or (tool in REQUESTS and text.startswith("domain:")):
        return _domain(text)
    if tool == "Agent" and ":" not in text:
        return ArgumentSpecifier("subagent_type", text_pattern(text), default="general-purpose")
    found = _ARGUMENT.match(text)
    if found is None:
        raise ValueError(f"{tool} takes an argument's name and a pattern, e.g. {tool}(repo:org/*)")
    return ArgumentSpecifier(found[1], text_pattern(found[2]))


def _domain(text: str) -> DomainSpecifier:
    kind, colon, domain = text.partition(":")
    if kind != "domain" or not colon:
        raise ValueError("WebFetch takes a domain, e.g. WebFetch(domain:example.org)")
    only_below = domain.startswith("*.")
    try:
        return DomainSpecifier(ascii_host(domain.removeprefix("*.")), only_below)
    except NotAHost as problem:
        raise ValueError(f"{domain!r} is no domain: {problem}; write e.g. domain:*.example.org") from None


def _host(url: object) -> str:
    try:
        return urlsplit(str(url)).hostname or ""
    except ValueError:
        return ""


def _values(value: Any, name: str) -> Iterator[Any]:
    """Everything that `name` may mean: a member of that very name, and `a.b` as a member of a member; each entry of
    lists on the way. An upstream may read either, so neither may hide the other."""
    if isinstance(value, list | tuple):
        for one in cast("Sequence[Any]", value):
            yield from _values(one, name)
    elif name == "":
        if value is not None:
            yield value
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        for key, member in members.items():
            if key == name:
                yield from _values(member, "")
            elif name.startswith(f"{key}."):
                yield from _values(member, name[len(key) + 1 :])


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_WITH_BRACKETS = re.compile(r"([^()]*)\((.*)\)\Z", re.DOTALL)


class BrokenRule(ValueError):
    """A permission rule that cannot be understood; the text names the rule and what to write instead."""


@dataclass(frozen=True)
class Rule:
    """One parsed rule. `text` is what the user wrote and what decisions quote; `origin` is where, `FILE:LINE`.

    It is about one `tool`, all tools of a `server`, or those whose name `fits`; with a specifier, about some calls.
    One that a person granted for a command allows it where they were asked about it only, in `directory`: `make` is
    another program elsewhere. `blocks`: it stands in `bash.blocked`. `until_s`: when it ends, in seconds since 1970.
    """

    text: str
    tool: str = ""
    server: str = ""
    fits: Callable[[str], object] | None = None
    specifier: Specifier | None = None
    origin: str = ""
    directory: str = ""
    blocks: bool = False
    until_s: float | None = None

    def names(self, rule_name: str) -> bool:
        """Whether the rule is about this tool, or some calls of it."""
        if self.tool:
            return rule_name == self.tool
        if self.server:
            return rule_name.startswith(f"{UPSTREAM_PREFIX}{self.server}{SEPARATOR}")
        return self.fits is not None and self.fits(rule_name) is not None

    def hits(self, call: Call) -> bool:
        """For deny and ask: whether some part of the call is meant."""
        return self.specifier is None or self.specifier.hits(call)

    def covers(self, call: Call) -> bool:
        """For allow: whether the whole call is meant."""
        return self.specifier is None or self.specifier.covers(call)


def parse_rule(
    text: str, *, origin: str = "", base: str = "", may_name_all: bool = False, others: Collection[str] = ()
) -> Rule:
    """`base` is the directory that `/path` in it is relative to; empty: the workspace. `may_name_all`: whether `*` may
    stand for every tool, which only denying and asking may; `others`: tools beside ours that have plain names. Raises
    `BrokenRule`."""
    quoted = f"rule {text[:200]!r}" + (f" ({origin})" if origin else "")
    try:
        rule, until_s = split_end(text.strip())
    except ValueError as problem:
        raise BrokenRule(f"{quoted}: {problem}") from None
    name, specifier_text = rule, None
    if "(" in rule or ")" in rule:
        found = _WITH_BRACKETS.match(rule)
        if found is None:
            raise BrokenRule(f"{quoted}: the brackets do not close; write e.g. Bash(npm run *)")
        name, specifier_text = found[1].strip(), found[2].strip()
        if not specifier_text:
            raise BrokenRule(f"{quoted}: nothing stands in the brackets; write the tool's name alone to mean all of it")
    try:
        parsed = replace(_parse_name(name, may_name_all, others), text=text.strip(), origin=origin, until_s=until_s)
        if specifier_text is None or specifier_text == "*":
            return parsed
        if not parsed.tool:
            raise ValueError("a pattern in brackets wants one tool's whole name before it")
        return replace(parsed, specifier=parse_specifier(parsed.tool, specifier_text, base))
    except ValueError as problem:
        raise BrokenRule(f"{quoted}: {problem}") from None


def _parse_name(name: str, may_name_all: bool, others: Collection[str]) -> Rule:
    if not name.startswith(UPSTREAM_PREFIX):
        if "*" in name and may_name_all:
            return Rule(name, fits=text_pattern(name))
        if not _PLAIN_NAME.match(name):
            raise ValueError("this is no tool name; write e.g. Bash, Edit(src/**), mcp__github or mcp__github__search")
        tool = name if name in others else TOOL_ALIASES.get(name, name)
        if SEPARATOR not in tool and tool not in names_of_ours() and tool not in others:
            known = (*others, *builtin_names())
            hint = did_you_mean(tool, known) or f"tools are {', '.join(known)} and mcp__SERVER__TOOL"
            raise ValueError(f"names no tool; {hint}")
        return Rule(name, tool=tool)
    server_only = name.removeprefix(UPSTREAM_PREFIX).removesuffix("__*")
    if server_only and SEPARATOR not in server_only and "*" not in server_only:
        return Rule(name, server=server_only)
    if name == f"{UPSTREAM_PREFIX}*" and may_name_all:
        return Rule(name, fits=text_pattern(name))
    try:
        split = split_name(name)
    except InvalidName as problem:
        raise ValueError(str(problem)) from None
    if "*" in split.server:
        raise ValueError("`*` stands only for tools of a server you name, e.g. mcp__github__get_*")
    return Rule(name, fits=text_pattern(name)) if "*" in name else Rule(name, tool=name)
