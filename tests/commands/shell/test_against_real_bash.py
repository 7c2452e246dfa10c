"""The differential run of R-SHELL-2: what the analysis says against what real bash runs, on probes and on scripts that
hypothesis makes. Every program is a logging shim; options are another matter (`test_options`)."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, allowed_by
from tests.commands.shell.attack_scripts import ATTACKS, DENIED
from tests.commands.shell.real_bash import RealBash
from tests.repetitions import examples

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

_PROGRAMS = [
    "rm",
    "id",
    "curl",
    "git",
    "ls",
    "cat",
    "echo",
    "true",
    "false",
    "grep",
    "a",
    "b",
    "x",
    "sh",
    "printf",
    "#",
]
_PLAIN_PIECES = [
    *(
        " ",
        " ",
        " ",
        "\t",
        ";",
        "; ",
        " && ",
        " || ",
        " | ",
        "\n",
        " \\\n ",
        "git",
        "ls",
        "echo",
        "grep",
        "false",
        "rm",
    ),
    *(
        "a",
        "x",
        "-n",
        "--b=c",
        "'a b'",
        '"c d"',
        "''",
        '""',
        "'$x'",
        '"\\$x"',
        "\\ ",
        "\\;",
        "\\'",
        "a#b",
        " #c\n",
        "HEAD~1",
    ),
    *("é", "x.y", "@", "%", "+", ",", "/", ":", "^", "=", "!", "'\n'", '"\n"', "\\#", "'#'", '"a\\\\"', '"foo$"'),
]
_OTHER_PIECES = [
    *(
        "\\\n",
        "\\",
        "'",
        '"',
        "$x",
        "$(rm x)",
        "`rm x`",
        "`a \\`rm x\\``",
        "\\`",
        "`",
        "x='a[$(rm x)]'",
        "$((x))",
        "((x))",
        "mapfile -tC 'rm x' -c1 ",
        "compgen -C 'rm x' ",
        "set -- ",
        "$(($1))",
        "<(rm x)",
        "&",
        "|&",
        ";;",
        "<",
        ">",
        ">>",
        "<<E\n",
        "E\n",
        "<<<",
        "#",
    ),
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "[[ ",
        " ]]",
        "if ",
        "then ",
        "fi",
        "time ",
        "! ",
        "A=b ",
        "~",
        "*",
        "?",
        "{a,b}",
        "$'\\x72m'",
    ),
    *(
        '$"rm"',
        "${x}",
        "$((1))",
        "case ",
        " in ",
        "esac",
        "for ",
        "do ",
        "done",
        "while ",
        "function ",
        "eval ",
        "exec ",
    ),
    *(
        "command ",
        "builtin ",
        "sh -c ",
        "'rm x'",
        "\\r\\m",
        "r''m",
        'r""m',
        "$@",
        "$*",
        "2>&1",
        "coproc ",
        "alias ",
        "- ",
    ),
]


@pytest.fixture(scope="module")
def real_bash(tmp_path_factory: pytest.TempPathFactory) -> RealBash:
    return RealBash(tmp_path_factory.mktemp("bash"), _PROGRAMS)


def _scripts(pieces: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), min_size=1, max_size=14).map("".join)


def _check_plain(real_bash: RealBash, text: str) -> None:
    script = read_script(text)
    # Every program may be run with any words: what then passes is what options and exact names cannot stop.
    if allowed_by(script, [CommandPattern.parse(f"{name} *") for name in _PROGRAMS]):
        return
    ran = Counter(real_bash.ran(text))
    assert not ran - Counter(script.commands), f"{text!r}: said {script.commands}, ran {dict(ran)}"


def _check_seen(real_bash: RealBash, text: str) -> None:
    script = read_script(text)
    if script.hidden:
        return
    seen = {words[0] for words in script.all_commands}
    ran = {words[0] for words in real_bash.ran(text)}
    # Of bash itself, as a shim: what it was given to run it does not run.
    assert ran <= seen, f"{text!r}: saw {seen}, ran {ran}"


@pytest.mark.parametrize("case_id", [*ATTACKS, *DENIED])
def test_of_each_attack_bash_runs_nothing_that_was_not_said(real_bash: RealBash, case_id: str) -> None:
    text = {**ATTACKS, **DENIED}[case_id].replace("$OUT", "out").replace("$PORT_PRIV", "1")
    if "\x00" in text:
        pytest.skip("NUL cannot be given to bash")

    _check_plain(real_bash, text)
    _check_seen(real_bash, text)


_EXAMPLES = int(os.environ.get("GOAT_MCP_TEST_EXAMPLES", examples(150)))
_SETTINGS = settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_SETTINGS
@given(text=_scripts(_PLAIN_PIECES))
def test_r_shell_2_a_plain_script_runs_only_the_words_it_was_said_to(real_bash: RealBash, text: str) -> None:
    _check_plain(real_bash, text)


@_SETTINGS
@given(text=_scripts([*_PLAIN_PIECES, *_OTHER_PIECES]))
def test_r_shell_2_and_so_among_scripts_of_all_kinds(real_bash: RealBash, text: str) -> None:
    _check_plain(real_bash, text)


@_SETTINGS
@given(text=_scripts([*_PLAIN_PIECES, *_OTHER_PIECES]))
@example(text="r\\\nm x")
@example(text="echo `echo \\`rm x\\``")
@example(text="x='a[$(rm x)]'; echo $((x))")
@example(text="mapfile -tC 'rm x' -c 1 <<< a")
def test_r_shell_5_a_program_that_runs_is_seen_or_its_hiding_is_said(real_bash: RealBash, text: str) -> None:
    _check_seen(real_bash, text)


def test_the_shims_tell_what_bash_runs(real_bash: RealBash, tmp_path: Path) -> None:
    assert sorted(real_bash.ran("git a 'b c' && rm '' | ls")) == [("git", "a", "b c"), ("ls",), ("rm", "")]
