"""What is written of permission rules: into the user's settings file or a project's, with what they then mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.calls.permissions.mode import Effect, Mode
from goat_mcp.calls.permissions.remembered import RememberedRule, RememberedRules
from goat_mcp.calls.permissions.rule import BrokenRule, Rule, parse_rule
from goat_mcp.calls.permissions.rule_end import seconds_in, split_end, with_end
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.gateway.rules.listed import ListedRule, listed_rules, remembered_here
from goat_mcp.gateway.rules.words import meaning, stricter
from goat_mcp.gateway.settings_edit import SettingsEdit, edited_settings, settings_path, value_in
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.yaml_text import edited_list, read_yaml
from goat_mcp.state.file_edit import text_of

_LISTS = {effect: ("permissions", effect.value) for effect in Effect}
_SHOWN_RULES = 5


@dataclass(frozen=True)
class RuleChange:
    """One file's. `ended` are rules that were over and went with it; `notes` say what else decides."""

    edit: SettingsEdit
    effect: Effect | None = None
    rules: Sequence[Rule] = ()
    removed: Sequence[tuple[Effect, str]] = ()
    ended: Sequence[str] = ()
    winners: Sequence[ListedRule] = ()
    notes: Sequence[str] = ()

    def lines(self, *, dry_run: bool) -> Iterator[str]:
        """For people, below the diff."""
        gone = "Would be taken out" if dry_run else "Taken out"
        if self.effect is not None:
            yield from (_sentence(meaning(self.effect, rule)) for rule in self.rules)
        yield from (f"{gone}: {effect.value} {text}" for effect, text in self.removed)
        if self.ended:
            yield f"{gone}, since it was over: {', '.join(self.ended)}"
        for one in self.winners[:_SHOWN_RULES]:
            yield f"Stricter, and wins over it: {one.effect.value} {one.rule.text} ({one.origin})"
        if len(self.winners) > _SHOWN_RULES:
            yield f"and {len(self.winners) - _SHOWN_RULES} more; see: goat-mcp rules"
        yield from self.notes


def changed_rules(
    effect: Effect, texts: Sequence[str], *, in_project: bool, expires: str | None, dry_run: bool
) -> RuleChange:
    """Write the rules into a file, in place of the same ones with another end. Raises `ToolError`."""
    rules = [_parsed(effect, text, expires) for text in texts]
    wanted = {split_end(rule.text)[0] for rule in rules}
    ended: list[str] = []

    def edit(text: str) -> str:
        text, over = _swept(text)
        ended.extend(one for one in over if split_end(one.strip())[0] not in wanted)
        replaced = [one for one in _items(text, effect) if _base(one) in wanted]
        new = [rule.text for rule in rules]
        if [one.strip() for one in replaced] != new:
            text = edited_list(
                text, _LISTS[effect], remove=[one for one in replaced if one.strip() not in new], add=new
            )
        return text

    edited = edited_settings(in_project, edit)
    settings = load_settings({})  # raises for a file that no server could use, before anything is written
    if not dry_run:
        edited.write()
        settings = load_settings({})
    listed = [one for one in listed_rules(settings) if one.remembered is None]
    above = [one for one in listed if any(stricter(effect, rule, [(one.effect, one.rule)]) for rule in rules)]
    notes = [note for rule in rules for note in _notes(effect, rule, settings)]
    if not dry_run and not (in_project and effect is not Effect.DENY and not edited.is_trusted):
        notes += _without_effect(effect, rules, listed, settings)
    return RuleChange(edited, effect, rules, ended=ended, winners=above, notes=list(dict.fromkeys(notes)))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _parsed(effect: Effect, text: str, expires: str | None) -> Rule:
    try:
        rule = parse_rule(text, may_name_all=effect is not Effect.ALLOW)
        if expires is None:
            if rule.until_s is not None and rule.until_s <= time.time():
                raise ToolError(ErrorCode.INPUT, f"rule {text!r:.200} is over already", "Give an end that is to come.")
            return rule
        if rule.until_s is not None:
            raise ToolError(
                ErrorCode.INPUT, f"rule {text!r:.200} has an end already", "Leave out --expires, or `until`."
            )
        return parse_rule(
            with_end(rule.text, time.time() + seconds_in(expires)), may_name_all=effect is not Effect.ALLOW
        )
    except BrokenRule as broken:
        raise ToolError(ErrorCode.INPUT, str(broken), "See docs/permissions.md for what a rule may say.") from None
    except ValueError as broken:
        raise ToolError(ErrorCode.INPUT, f"--expires {broken}", "Leave it out for a rule without an end.") from None


def _notes(effect: Effect, rule: Rule, settings: Settings) -> Iterator[str]:
    """What else decides about such calls, and a server that is not there."""
    if effect is Effect.ALLOW and settings.mode is Mode.PLAN:
        yield "Mode plan refuses changes, whatever rules allow."
    if effect is Effect.ALLOW and rule.tool == "Bash" and settings.bash.allowed:
        yield "bash.allowed is set: commands that it does not list are refused, whatever rules allow."
    server = rule.server or (rule.tool.split(SEPARATOR)[1] if rule.tool.startswith(UPSTREAM_PREFIX) else "")
    if server:
        known = _servers(settings)
        if server not in known:
            hint = did_you_mean(server, known)
            yield f"No server is called {server} here" + (f"; {hint}" if hint else ".")


def _without_effect(
    effect: Effect, rules: Sequence[Rule], listed: Sequence[ListedRule], settings: Settings
) -> Iterator[str]:
    """What is written and does not count, since a variable holds the whole list."""
    in_force = {one.rule.text for one in listed if one.effect is effect}
    key = f"permissions.{effect.value}"
    if any(rule.text not in in_force for rule in rules):
        yield f"It does not count here: {key} is set by the {settings.source_of(key)}, which beats files."


def _servers(settings: Settings) -> list[str]:
    from goat_mcp.gateway.build.manifests import read
    from goat_mcp.upstreams.config.upstream_files import DeclaredEntry, load_upstream_files

    manifests = read(settings)
    declared = (
        []
        if manifests is None
        else [DeclaredEntry(one.name, dict(one.entry), one.document.file) for one in manifests.users.upstreams]
    )
    found = load_upstream_files(settings.upstreams, contents=settings.contents, declared=declared)
    return [config.server for config in found.configs]


def removed_rules(which: Sequence[str], *, dry_run: bool) -> tuple[list[RuleChange], list[RememberedRule]]:
    """Take these rules out of their files; remembered ones are for the caller to forget.

    Raises `ToolError`, and then nothing has changed.
    """
    picked = _Picked()
    for name in which:
        picked.add(name)
    changes = [change for in_project in (False, True) if (change := _without(picked, in_project))]
    for change in changes if not dry_run else ():
        change.edit.write()
    return changes, picked.remembered


def removed_from_own_file(effect: Effect, text: str) -> RuleChange:
    """Take one rule out of one list of the user's own file. Raises `ToolError`, and then nothing has changed."""
    picked = _Picked([(False, effect, item) for item in _items(text_of(settings_path(False)), effect) if item == text])
    change = _without(picked, in_project=False)
    if change is None:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"no {effect.value} rule {text!r:.200} stands in {settings_path(False)}",
            "It was taken out meanwhile, or stands in another file.",
        )
    change.edit.write()
    return change


def forgotten_rules(which: Sequence[str], remembered: RememberedRules) -> list[RememberedRule]:
    """Take back remembered rules, by id or text. Raises `ToolError`, and then nothing is forgotten, if one is not
    there."""
    if not which:
        return []
    known = {name for one in remembered_here(remembered) for name in (one.id, one.rule.text)}
    if unknown := [one for one in which if one not in known]:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"no remembered rule {unknown[0]!r:.200} in this workspace; {did_you_mean(unknown[0], known)}".rstrip("; "),
            "See goat-mcp rules. To take a rule out of a settings file: goat-mcp rules remove RULE.",
        )
    gone: list[RememberedRule] = []
    for one in dict.fromkeys(which):
        try:
            gone += remembered.forget(one)
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO, f"{remembered.path} cannot be written: {problem.strerror or problem}", "Nothing was lost."
            ) from None
    return gone


@dataclass
class _Picked:
    """What was named. `texts` say whether it stands in the project's file, its list, and how it is written."""

    texts: list[tuple[bool, Effect, str]] = field(default_factory=list[tuple[bool, Effect, str]])
    remembered: list[RememberedRule] = field(default_factory=list[RememberedRule])

    def add(self, name: str) -> None:
        """Raises `ToolError`."""
        if name.strip().isdigit():
            self._add_listed(name)
            return
        found = [(in_project, effect, item) for in_project, effect, item in _in_files() if _is_meant(name, item)]
        self.texts += found
        if not found:
            self._add_listed(name)

    def _add_listed(self, name: str) -> None:
        listed = listed_rules(load_settings({}))
        found = [one for one in listed if name.strip() == str(one.number)]
        if not found:
            ids = [one for one in listed if one.remembered is not None and name == one.remembered.id]
            found = ids or [one for one in listed if _is_meant(name, one.rule.text)]
        if not found:
            known = [one.rule.text for one in listed]
            message = f"no rule {name!r:.200} holds here; {did_you_mean(name, known)}".rstrip("; ")
            raise ToolError(ErrorCode.NOT_FOUND, message, "See goat-mcp rules.")
        for one in found:
            self._take(one)

    def _take(self, one: ListedRule) -> None:
        if one.remembered is not None:
            self.remembered.append(one.remembered)
            return
        for in_project in (False, True):
            if one.file is not None and one.file.resolve() == settings_path(in_project).resolve():
                self.texts.append((in_project, one.effect, one.rule.text))
                return
        where = "That is neither your goat-mcp.yaml nor that of the current directory: take it out there."
        if one.rule.blocks:
            where = "It is in another list: see goat-mcp config get bash.blocked, and change that with config set."
        raise ToolError(ErrorCode.INPUT, f"{one.effect.value} {one.rule.text} stands in {one.origin}", where)


def _without(picked: _Picked, in_project: bool) -> RuleChange | None:
    gone = list(dict.fromkeys((effect, text) for of, effect, text in picked.texts if of is in_project))
    if not gone:
        return None

    def edit(text: str) -> str:
        for effect in Effect:
            named = [one.strip() for of, one in gone if of is effect]
            text = _without_items(text, effect, lambda item, named=named: item.strip() in named)
        return text

    notes = ["Until you trust it again, running servers go on refusing what it refused."] if in_project else []
    edited = edited_settings(in_project, edit)
    return RuleChange(edited, removed=gone, notes=[] if edited.is_trusted else notes)


def _in_files() -> Iterator[tuple[bool, Effect, str]]:
    """Each rule as it is written: whether in the project's file, its list, its text."""
    for in_project in (False, True):
        text = text_of(settings_path(in_project))
        for effect in Effect:
            for item in _items(text, effect):
                yield in_project, effect, item


def _is_meant(name: str, text: str) -> bool:
    return name.strip() in (text.strip(), _base(text))


def _base(text: str) -> str:
    """A rule without its end, if it has one."""
    try:
        return split_end(text.strip())[0]
    except ValueError:
        return text.strip()


def _items(text: str, effect: Effect) -> list[str]:
    """The rules of one list, as they are written there."""
    found: Any = value_in(read_yaml(text), ".".join(_LISTS[effect]))
    items = cast("list[Any]", found) if isinstance(found, list) else []
    return [item for item in items if isinstance(item, str)]


def _swept(text: str) -> tuple[str, list[str]]:
    """The text without rules that are over, and those."""
    over: list[str] = []
    for effect in Effect:
        gone = [item for item in _items(text, effect) if _is_over(item)]
        over += gone
        text = _without_items(text, effect, lambda item, gone=gone: item in gone)
    return text, over


def _is_over(item: str) -> bool:
    try:
        _, until_s = split_end(item.strip())
    except ValueError:
        return False
    return until_s is not None and until_s <= time.time()


def _without_items(text: str, effect: Effect, goes: Callable[[str], bool]) -> str:
    gone = [item for item in _items(text, effect) if goes(item)]
    return edited_list(text, _LISTS[effect], remove=gone) if gone else text
