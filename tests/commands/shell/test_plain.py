"""Which scripts are plain, what their words are, and how the reason reads where one is not (R-SHELL-2)."""

from __future__ import annotations

import pytest

from goat_mcp.commands.shell.script_parsing import read_script


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("git status", (("git", "status"),)),
        ("a; b && c || d | e\nf", (("a",), ("b",), ("c",), ("d",), ("e",), ("f",))),
        ("a 'b c' \"d e\" f\\ g ''", (("a", "b c", "d e", "f g", ""),)),
        ("a x'y'\"z\" \\;", (("a", "xyz", ";"),)),
        ("a \\\n  b", (("a", "b"),)),
        ("a # b; c\nd", (("a",), ("d",))),
        ('a "x\\"y\\$z" \'$x\' "end$"', (("a", 'x"y$z', "$x", "end$"),)),
        ("git log HEAD~1..HEAD@1 a=b -x", (("git", "log", "HEAD~1..HEAD@1", "a=b", "-x"),)),
        ("echo 'two\nlines' 1 -2", (("echo", "two\nlines", "1", "-2"),)),
    ],
)
def test_a_plain_script_and_its_words(text: str, commands: tuple[tuple[str, ...], ...]) -> None:
    script = read_script(text)

    assert (script.commands, script.not_plain) == (commands, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a > out", "a redirection (> out)"),
        ("a 2>&1", "a redirection (2>&1)"),
        ("a $x", "a variable ($x)"),
        ('a "${x}"', "a variable (${x})"),
        ("a $(b)", "a command substitution ($(b))"),
        ("a <(b)", "a process substitution (<(b))"),
        ("a &", "a background command (&)"),
        ("A=b c", "an assignment (A=b)"),
        ("a *.py", "a wildcard (*.py)"),
        ("a ~/x", "a home directory (~/x)"),
        ("! a", "a negation (! a)"),
        ("time a", "the reserved word time"),
        ("(a)", "a subshell ((a))"),
        ("a $'b'", "an escape string ($'b')"),
        ("export A=b", "a declaration (export A=b)"),
        ("[ -f x ]", "a test ([ -f x ])"),
        ("a |& b", "a pipe of the error output (|&)"),
        ("r\\\nm x", "a word that goes on in the next line"),
        ("", "no command at all"),
        ("# only this", "no command at all"),
        ("a {b,c}", "an expansion"),
        ("a (", "text that is no valid bash"),
    ],
)
def test_what_is_not_plain_is_named(text: str, reason: str) -> None:
    script = read_script(text)

    assert script.commands == ()
    assert script.not_plain.startswith(reason)
