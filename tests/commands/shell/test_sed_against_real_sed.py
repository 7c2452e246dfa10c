"""What is said of a sed script against what real sed does with it: a script that is said to print only may neither run
a program nor make or change a file (R-SHELL-4). The shell that sed's `e` starts finds logging programs only."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from goat_mcp.commands.shell.options.unsafe import unsafe_option
from tests.repetitions import examples

pytestmark = pytest.mark.skipif(shutil.which("sed") is None, reason="needs sed")

_INPUT = "touch q ]a\n[a]/b,c|]^touch q\nx]y/e w q;e\n"
_PIECES = [
    *(
        "s",
        "y",
        "/",
        "/",
        "/",
        "#",
        "|",
        ",",
        "[",
        "]",
        "[]",
        "[^",
        "[^]",
        "[a]",
        "[[:alpha:]]",
        "[[:",
        ":]",
        "[[.",
        ".]",
    ),
    *("[/]", "[\\/]", "\\/", "\\[", "\\]", "\\", "\\n", "\\c", "\\c[", "\\x5b", "\\d091", "^", "-", "a", "b", ".", "*"),
    *(
        "e",
        "w q",
        "e touch q",
        "W q",
        "r f",
        "p",
        "g",
        "I",
        "M",
        "1",
        "2",
        "$",
        "!",
        "~",
        "+",
        ";",
        "\n",
        "{",
        "}",
        " ",
    ),
    *(":a", "ba", "t", "n", "N", "d", "q", "l", "=", "&", "touch q", "x", "i\\\n", "a ", "\\,"),
]


class _RealSed:
    """Runs sed in a folder of its own and tells what became of it beside the printing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sed = shutil.which("sed") or ""
        (folder / "bin").mkdir()
        (folder / "work").mkdir()

    def did(self, script: str, options: tuple[str, ...]) -> list[str]:
        """The files that are there now and were not, and "ran" if sed started a program."""
        work = self._folder / "work"
        (work / "f").write_text(_INPUT)
        finished = subprocess.run(
            # Whatever starts at all is stopped by the limit on files and by having no program to find.
            ["/bin/sh", "-c", 'ulimit -t 1; exec "$@"', "sh", self._sed, *options, "--", script, "f"],
            cwd=work,
            env={"PATH": str(self._folder / "bin"), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        made = sorted(path.name for path in work.iterdir() if path.name != "f")
        for name in made:
            (work / name).unlink()
        changed = ["f"] if (work / "f").read_text() != _INPUT else []
        # The shell of `e` says that there is no such program, which only it can say.
        ran = ["ran"] if b"sh: " in finished.stderr else []
        return [*made, *changed, *ran]


@pytest.fixture(scope="module")
def real_sed(tmp_path_factory: pytest.TempPathFactory) -> _RealSed:
    return _RealSed(tmp_path_factory.mktemp("sed"))


def _substitutions() -> st.SearchStrategy[str]:
    """`s` and its parts, more likely to be whole than pieces in a row; the flags may be any."""
    part = st.lists(st.sampled_from(_PIECES), max_size=5).map("".join)
    one = st.tuples(st.sampled_from("sy"), st.sampled_from("/#|,"), part, part, st.sampled_from(["", "g", "e", "w q"]))
    return one.map(lambda parts: f"{parts[0]}{parts[1]}{parts[2]}{parts[1]}{parts[3]}{parts[1]}{parts[4]}")


def _scripts() -> st.SearchStrategy[str]:
    piece = st.one_of(st.sampled_from(_PIECES), _substitutions(), _substitutions())
    return st.lists(piece, min_size=1, max_size=5).flatmap(
        lambda pieces: st.sampled_from(["", ";"]).map(lambda between: between.join(pieces))
    )


_EXAMPLES = int(os.environ.get("GOAT_MCP_TEST_EXAMPLES", examples(150)))


@settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=_scripts(), options=st.sampled_from([(), ("-n",), ("-E",), ("-z",), ("--posix",)]))
@example(script="s/[]/]a/g;s#b/e#c#", options=())
@example(script="/[]/p;s#]x/w q", options=())
@example(script="s/[^]/]a/g;s#b/e#c#", options=())
@example(script=":a;N;$!ba;s/\\n/ /g", options=())
def test_r_shell_4_a_script_that_is_said_to_print_does_nothing_else(
    real_sed: _RealSed, script: str, options: tuple[str, ...]
) -> None:
    if unsafe_option(("sed", *options, "--", script, "f")):
        return

    assert real_sed.did(script, options) == []


@pytest.mark.parametrize(
    ("script", "did"),
    [("w q", ["q"]), ("1e touch q", ["ran"]), ("s/.*/touch q/e", ["ran"]), ("s/[]/]a/g;s#b/e#c#", ["ran"]), ("p", [])],
)
def test_the_run_sees_what_sed_does(real_sed: _RealSed, script: str, did: list[str]) -> None:
    assert real_sed.did(script, ()) == did
