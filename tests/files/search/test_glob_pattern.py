"""Glob patterns against a plain, slow reading of what they mean."""

from __future__ import annotations

import re
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.search.glob_pattern import BadGlob, GlobPattern, expand_braces, split_globs
from goat_mcp.files.search.path_rules import RuledPaths, rules_of_directory, rules_of_globs


def means(pattern: str, path: str) -> bool:
    """Whether a path matches, by trying every way; knows `**`, `*`, `?` and plain characters."""

    @cache
    def name(glob: str, text: str) -> bool:
        if not glob:
            return not text
        if glob[0] == "*":
            return name(glob[1:], text) or (bool(text) and name(glob, text[1:]))
        return bool(text) and glob[0] in ("?", text[0]) and name(glob[1:], text[1:])

    @cache
    def names(globs: tuple[str, ...], texts: tuple[str, ...]) -> bool:
        if not globs:
            return not texts
        if globs[0] == "**":
            if len(globs) == 1:
                return bool(texts)
            return names(globs[1:], texts) or (bool(texts) and names(globs, texts[1:]))
        return bool(texts) and name(globs[0], texts[0]) and names(globs[1:], texts[1:])

    globs = [
        glob
        for index, glob in enumerate(pattern.split("/"))
        if glob != "**" or pattern.split("/")[index - 1 : index] != ["**"]
    ]
    return names(tuple(globs), tuple(path.split("/")))


parts = st.sampled_from(["**", "*", "a", "b", "*a", "a*", "?", "a?b", "*a*", "*a*b", "a*b*a", ".a"])
patterns = st.lists(parts, min_size=1, max_size=5).map("/".join)
paths = st.lists(st.text("ab.", min_size=1, max_size=5), min_size=1, max_size=5).map("/".join)


@given(patterns, paths)
def test_a_pattern_matches_exactly_what_it_means(pattern: str, path: str) -> None:
    parsed = GlobPattern.parse(pattern)

    matched = re.fullmatch(parsed.expression, path, re.DOTALL) is not None

    assert matched == means(pattern, path)


@given(patterns, paths)
def test_depth_and_leading_names_never_hide_a_match(pattern: str, path: str) -> None:
    parsed = GlobPattern.parse(pattern)
    names = path.split("/")

    if re.fullmatch(parsed.expression, path, re.DOTALL):
        assert parsed.max_depth in (None, len(names))
        assert tuple(names[: len(parsed.literal_names)]) == parsed.literal_names


@pytest.mark.parametrize("pattern", ["*a" * 40 + "c", "**/*a/" * 30 + "c", "**/a*a*a*/" * 20 + "**/c", "?*" * 30 + "c"])
def test_no_pattern_runs_away(pattern: str) -> None:
    expression = re.compile(GlobPattern.parse(pattern).expression, re.DOTALL)
    started_s = time.process_time()

    assert expression.fullmatch("/".join(["a" * 60] * 60) + "/b") is None
    assert time.process_time() - started_s < 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a{b,c}d", ["abd", "acd"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"]),
        ("{a}{,x}", ["a", "ax"]),
        (r"\{a,b\}", [r"\{a,b\}"]),
        ("[{]a", ["[{]a"]),
        ("a,b", ["a,b"]),
    ],
)
def test_braces_expand(text: str, expected: list[str]) -> None:
    assert expand_braces(text) == expected


@pytest.mark.parametrize("text", ["{a", "{a,{b}", "{a,b}" * 10, "{a,b}" * 8 + "c" * 1000])
def test_open_or_endless_braces_are_refused(text: str) -> None:
    with pytest.raises(BadGlob):
        expand_braces(text)


@pytest.mark.parametrize(
    ("text", "globs"),
    [
        ("*.py, *.md", ["*.py", "*.md"]),
        ("*.{ts,tsx} !a", ["*.{ts,tsx}", "!a"]),
        ("{a b,c}", ["{a b,c}"]),
        (r"a\ b", [r"a\ b"]),
        (" , ", []),
    ],
)
def test_a_list_of_globs_splits_outside_braces(text: str, globs: list[str]) -> None:
    assert split_globs(text) == globs


def test_globs_as_ignore_lines_hide_the_rest_first() -> None:
    assert rules_of_globs("*.py !test_* /ws/src/*.c #x", below="/ws") == (
        "*",
        "!*/",
        "!*.py",
        "!/src/*.c",
        "!\\#x",
        "test_*",
    )
    assert rules_of_directory(["a b", "c[1]"]) == ("/*", r"!/a\ b", r"/a\ b/*", r"!/a\ b/c\[1\]")


@pytest.mark.parametrize(
    ("globs", "kept"),
    [
        ("*.py", ["./a.py", "./b/a.py"]),
        ("*.py, !b", ["./a.py"]),
        ("!b/", ["./a.py", "./a.md"]),
        ("/*.py", ["./a.py"]),
        ("b/**", ["./b/a.py", "./b/a.md"]),
        ("**/**/a.{md,txt}", ["./a.md", "./b/a.md"]),
        ("!.", ["./a.py", "./a.md", "./b/a.py", "./b/a.md"]),
        ("!/", ["./a.py", "./a.md", "./b/a.py", "./b/a.md"]),
    ],
)
def test_rules_keep_the_files_that_their_globs_name(globs: str, kept: list[str]) -> None:
    rules = RuledPaths(rules_of_globs(globs, below="/ws"))

    assert [path for path in ("./a.py", "./a.md", "./b/a.py", "./b/a.md") if rules.keep(path)] == kept
