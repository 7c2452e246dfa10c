"""Patterns of permission rules for commands (R-SHELL-3)."""

from __future__ import annotations

import time

import pytest

from goat_mcp.commands.shell.script_rules import CommandPattern


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("npm run build", "npm run build"),
        ("npm run *", "npm run test"),
        ("npm run *", "npm run test --watch"),
        # As in Claude Code: a blank and a star at the end are any further words, or none.
        ("npm run *", "npm run"),
        ("npm run:*", "npm run"),
        ("npm run:*", "npm run test x"),
        ("git * main", "git push main"),
        ("git * main", "git push origin main"),
        ("npm run test*", "npm run test:unit"),
        ("npm run test*", "npm run test --watch"),
        ("npm run test:*", "npm run test x"),
        ("* --version", "ls --version"),
        ("echo 'a *'", "echo a|*".replace("|", " ")),
        (r"echo \*", "echo *"),
        ("  ls   -la ", "ls -la"),
    ],
)
def test_a_pattern_matches_whole_words(pattern: str, command: str) -> None:
    words = ("echo", "a *") if pattern == "echo 'a *'" else tuple(command.split(" "))

    assert CommandPattern.parse(pattern).matches(words)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("npm run build", ("npm", "run", "build", "x")),
        ("npm run build", ("npm", "run")),
        ("npm run *", ("npm", "running")),
        ("npm run *", ("npm", "install")),
        ("git status:*", ("git", "statusx")),
        ("git status:*", ("gitx", "status")),
        ("git * main", ("git", "main")),
        ("git * main", ("git", "push", "main2")),
        ("ls *", ("lsof",)),
        ("ls *", ("./ls",)),
        ("ls *", ("/bin/ls",)),
        ("ls a b", ("ls", "a b")),
        ("echo 'a b'", ("echo", "a", "b")),
        (r"echo \*", ("echo", "x")),
        ("echo '*'", ("echo", "x")),
    ],
)
def test_a_longer_word_another_place_or_a_path_does_not_match(pattern: str, words: tuple[str, ...]) -> None:
    assert not CommandPattern.parse(pattern).matches(words)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "git(",
        "ls)",
        "a && b",
        "a | b",
        "a; b",
        "a > b",
        "git **",
        "a*** b",
        "echo 'x",
        'echo "x',
        "a \\",
        "a\nb",
    ],
)
def test_a_broken_pattern_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ .*\w"):
        CommandPattern.parse(text)


@pytest.mark.parametrize(
    ("pattern", "exact", "named"),
    [
        ("npm run build", True, 3),
        ("npm run *", False, 2),
        ("npm:*", False, 1),
        ("* x", False, 0),
        ("l*", False, 0),
        (r"echo \*", True, 2),
        ("git * main", False, 1),
    ],
)
def test_what_a_pattern_spells_out(pattern: str, exact: bool, named: int) -> None:
    parsed = CommandPattern.parse(pattern)

    assert (parsed.is_exact, parsed.named_words, parsed.text) == (exact, named, pattern)


@pytest.mark.parametrize("words", [("rm", "x"), ("RM", "x"), ("/bin/rm",), ("../rm", "-r")])
def test_for_deny_rules_the_programs_spelling_does_not_count(words: tuple[str, ...]) -> None:
    assert CommandPattern.parse("rm *").matches_any_spelling(words)
    assert CommandPattern.parse("/usr/bin/rm *").matches_any_spelling(words)
    assert CommandPattern.parse("r* *").matches_any_spelling(words)


def test_a_pattern_full_of_stars_takes_no_exponential_time() -> None:
    pattern = CommandPattern.parse("a " + "* x " * 40 + "y*a*a*a*a*a*b")
    computed_s = time.thread_time()

    matches = pattern.matches(("a", *("x" * 500 for _ in range(500))))

    assert not matches
    assert time.thread_time() - computed_s < 10
