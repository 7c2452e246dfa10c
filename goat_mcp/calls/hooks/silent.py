"""Hooks whose matcher means no tool there is: they guard nothing, and nobody hears of it. They run all the same."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator

from goat_mcp.calls.hooks.command import HookCommand
from goat_mcp.calls.hooks.matcher import Matcher
from goat_mcp.calls.hooks.options import TOOL_EVENTS
from goat_mcp.core.names import CLAUDE_CODE_ALIASES, NAME_ALIASES, SEPARATOR, UPSTREAM_PREFIX

_WORD = re.compile(r"[A-Za-z]\w{2,}")
_SHOWN_CHARS = 80


def silent_hooks(
    hooks: Iterable[HookCommand],
    tools: Collection[str],
    *,
    is_off: Callable[[str], bool],
    unlisted: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """The place of each such hook, and what is wrong with its matcher.

    `tools` are all there are now, by their canonical names; `is_off` tells of one that could be turned on. `unlisted`
    are servers whose tools nobody knows yet: what may mean one of theirs, as any pattern may, is passed over.
    """
    for hook in hooks:
        if hook.event not in TOOL_EVENTS:
            continue
        pattern = hook.matcher.pattern
        if pattern is None:
            for name in sorted(hook.matcher.names):
                if not _means_some(name, tools, unlisted, hook.is_imported) and not is_off(name):
                    yield hook.place, f"its matcher names {name[:_SHOWN_CHARS]}, which is no tool{_near([name], tools)}"
        elif not unlisted and not any(map(hook.matcher.matches, tools)):
            near = _near(_WORD.findall(pattern.pattern), tools)
            yield hook.place, f"its matcher {pattern.pattern[:_SHOWN_CHARS]!r} matches no tool{near}"


def _means_some(name: str, tools: Collection[str], unlisted: Collection[str], is_imported: bool) -> bool:
    if name in NAME_ALIASES or any(map(Matcher(frozenset((name,))).matches, tools)):
        return True
    if not name.startswith(UPSTREAM_PREFIX):
        return False
    server, separator, _ = name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)
    # That a server's bare name means nothing in a file of Claude Code is told when the file is read.
    return server in unlisted or (is_imported and not separator)


def _near(names: Iterable[str], tools: Collection[str]) -> str:
    spelled = {alias: tool for alias, tool in CLAUDE_CODE_ALIASES.items() if tool in tools}
    known = {name.casefold(): tool for name, tool in (*spelled.items(), *zip(tools, tools, strict=True))}
    found = [
        known[near]
        for name in names
        for near in difflib.get_close_matches(name.casefold(), list(known), n=2, cutoff=0.6)
    ]
    return f"; did you mean {' or '.join(dict.fromkeys(found))}?" if found else ""
