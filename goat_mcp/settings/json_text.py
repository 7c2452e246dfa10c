"""JSON as people and editors write it, comments and trailing commas included: read, and edited so that every byte that
is not concerned stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from goat_mcp.settings.json_spans import JsonObject, Member, TooManyItems, object_at, skip_blanks

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])', re.S)
_NOT_NEWLINE = re.compile(r"[^\r\n]")
_COMMENT_BEHIND = re.compile(r"[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/[ \t]*)(?=\r?\n)")
_LINE_END = re.compile(r"[ \t]*(?=\r?\n)")
_BLANK_LINE = re.compile(r"\n[ \t]*\r?(?=\n)")
_COMMA = re.compile(r"[ \t]*,")
_INDENT = "  "
_MAX_INDENT = 8


class NotJson(ValueError):
    """The text cannot be read, or not be edited; the message says where and why."""


def read_json(text: str, *, with_comments: bool) -> dict[str, Any]:
    """The object that a file holds; a blank file holds an empty one. Raises `NotJson`."""
    plain = _plain(text, with_comments=with_comments)
    if not plain.strip():
        return {}
    try:
        found = json.loads(plain, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as broken:
        is_with_comments = not with_comments and _can_be_read(text)
        what = "JSON has no comments and no comma behind the last item" if is_with_comments else broken.msg
        raise NotJson(f"line {broken.lineno}, column {broken.colno}: {what}") from None
    except RecursionError:
        raise NotJson("is nested too deeply") from None
    except NotJson:
        raise
    except ValueError:
        raise NotJson("holds a number of too many digits") from None
    if not isinstance(found, dict):
        raise NotJson("is not an object")
    return cast("dict[str, Any]", found)


def _can_be_read(text: str) -> bool:
    with contextlib.suppress(NotJson):
        read_json(text, with_comments=True)
        return True
    return False


def edited_json(
    text: str, path: Sequence[str], *, remove: Sequence[str], add: Mapping[str, Any], with_comments: bool
) -> str:
    """The text without some members of the object at `path`, and with others behind those that stay.

    Objects on the way are made if they are missing. Raises `NotJson`.
    """
    before = read_json(text, with_comments=with_comments)
    newline = "\r\n" if "\r\n" in text else "\n"
    source = text if text.strip() else f"{{}}{newline}"
    try:
        edited = _edited(source, path, frozenset(remove), add, with_comments, newline)
    except (json.JSONDecodeError, TooManyItems) as broken:
        raise NotJson(f"cannot be edited: {broken or 'it holds too much'}") from None
    # The edit is one of texts: what it means is held against what was meant.
    with contextlib.suppress(NotJson):
        if read_json(edited, with_comments=with_comments) == _expected(before, path, remove, add):
            return edited
    raise NotJson("cannot be edited without changing the rest of it")


def _edited(
    text: str, path: Sequence[str], remove: frozenset[str], add: Mapping[str, Any], with_comments: bool, newline: str
) -> str:
    plain = _plain(text, with_comments=with_comments)
    found = object_at(plain, skip_blanks(plain, 0))
    for depth, key in enumerate(path):
        member = found.last(key)
        if member is None or plain[member.value_start] != "{":
            value: Any = dict(add)
            for name in reversed(path[depth + 1 :]):
                value = {name: value}
            removed = frozenset([key]) if member is not None else frozenset[str]()
            return _changed(text, plain, found, removed, {key: value}, newline)
        found = object_at(plain, member.value_start)
    return _changed(text, plain, found, remove, add, newline)


def _changed(
    text: str, plain: str, found: JsonObject, remove: frozenset[str], add: Mapping[str, Any], newline: str
) -> str:
    """`text` with one of its objects changed. `plain` is the same text without comments, character for character."""
    # What is taken out and put in again is replaced in its place.
    replaced = [member for member in found.members if member.key in remove and member.key in add]
    remove = remove.difference(member.key for member in replaced)
    new_values = [(member.value_start, member.end, _in_place(plain, member, add, newline)) for member in replaced]
    add = {key: value for key, value in add.items() if key not in {member.key for member in replaced}}
    stays = [member for member in found.members if member.key not in remove]
    if not stays:
        return text[: found.start] + _whole(text, plain, found, add, newline) + text[found.end :]
    cuts = [_cut(text, member, found.members[-1]) for member in found.members if member.key in remove]
    last = stays[-1]
    lead = plain[stays[0].lead : stays[0].start]
    has_lines = "\n" in lead
    indent = lead.rpartition("\n")[2] if has_lines else ""
    unit = _unit(plain) if has_lines else ""
    between = f",{newline}{indent}" if has_lines else ", "
    added = between.join(_member(key, value, indent, unit, newline) for key, value in add.items())
    comma = _COMMA.match(text, last.end)
    behind = _COMMENT_BEHIND.match(text, comma.end() if comma else last.end)
    is_last = last is found.members[-1]
    if added and has_lines and behind and (is_last or (comma and comma.end() == last.after + 1)):
        # The comment behind the last one stays behind it.
        pieces = [*((start, end, "") for start, end in cuts), (behind.end(), behind.end(), newline + indent + added)]
        pieces += [] if comma else [(last.end, last.end, ",")]
    else:
        if not is_last:
            # What came behind it goes, and the comma before that.
            cuts.append((last.after, last.after + 1))
        pieces = [*((start, end, "") for start, end in cuts), (last.end, last.end, between + added if added else "")]
    done = len(text)
    for start, end, new in sorted([*pieces, *new_values], reverse=True):
        # Two cuts side by side may both take the blanks between them.
        text = text[:start] + new + text[min(end, done) :]
        done = start
    return text


def _in_place(plain: str, member: Member, add: Mapping[str, Any], newline: str) -> str:
    """The text of a value that replaces a member's: over several lines if the member has a line of its own."""
    lead = plain[member.lead : member.start]
    if "\n" not in lead:
        return json.dumps(add[member.key], ensure_ascii=False)
    return _written(add[member.key], lead.rpartition("\n")[2], _unit(plain), newline)


def _cut(text: str, member: Member, last: Member) -> tuple[int, int]:
    """Where a member is taken out: with the comments right above it and behind it, and no others."""
    end = member.end if member is last else member.after + 1
    trailing_comma = _COMMA.match(text, end) if member is last else None
    if own := _COMMENT_BEHIND.match(text, trailing_comma.end() if trailing_comma else end):
        end = own.end()
    behind = _COMMENT_BEHIND.match(text, member.lead, member.start)
    start = behind.end() if behind else member.lead
    blank_lines = [found.end() for found in _BLANK_LINE.finditer(text, start, member.start)]
    if blank_lines and text[start : blank_lines[-1]].strip():
        start = blank_lines[-1]  # what is above it, with a blank line between, is about more than this one
    if start != member.lead and not _LINE_END.match(text, end):
        # Without a line's end after it, a comment that stays would swallow what comes next.
        return member.start, end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    return start, end


def _whole(text: str, plain: str, found: JsonObject, add: Mapping[str, Any], newline: str) -> str:
    if not add:
        return "{}"
    line = plain[plain.rfind("\n", 0, found.start) + 1 : found.start]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    unit = _unit(plain)
    inner = outer + unit
    members = f",{newline}{inner}".join(_member(key, value, inner, unit, newline) for key, value in add.items())
    return f"{{{newline}{inner}{members}{newline}{outer}}}"


def _member(key: str, value: Any, indent: str, unit: str, newline: str) -> str:
    """`"key": value` over several lines; on one if there is no `unit` to indent by."""
    text = _written(value, indent, unit, newline) if unit else json.dumps(value, ensure_ascii=False)
    return f"{json.dumps(key, ensure_ascii=False)}: {text}"


def _written(value: Any, indent: str, unit: str, newline: str) -> str:
    """Objects over several lines; lists of texts and numbers on one, as people write arguments."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    fields = cast("dict[str, Any]", value).items()
    lines = f",{newline}{inner}".join(_member(key, child, inner, unit, newline) for key, child in fields)
    return f"{{{newline}{inner}{lines}{newline}{indent}}}"


def _unit(plain: str) -> str:
    """How far the file indents its first level."""
    first = re.search(r"\{\s*\n([ \t]+)\S", plain)
    return first.group(1) if first and len(first.group(1)) <= _MAX_INDENT else _INDENT


def _plain(text: str, *, with_comments: bool) -> str:
    """The text as strict JSON: comments and trailing commas are blanks, and everything stands where it stood."""
    if not with_comments:
        return text

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else _NOT_NEWLINE.sub(" ", found)

    without = _TOKEN.sub(blank, text)
    return _TRAILING_COMMA.sub(lambda match: match.group(1) or " ", without)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(f"holds {twice!r} twice in one object; it is not clear which one counts")
    return found


def _expected(before: Mapping[str, Any], path: Sequence[str], remove: Sequence[str], add: Mapping[str, Any]) -> Any:
    if not path:
        return {**{key: value for key, value in before.items() if key not in remove}, **add}
    child: Any = before.get(path[0])
    inner = cast("dict[str, Any]", child) if isinstance(child, dict) else {}
    return {**before, path[0]: _expected(inner, path[1:], remove, add)}
