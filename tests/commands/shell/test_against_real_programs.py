"""What the option tables call safe writes no file: by a table, and by running made-up commands (R-SHELL-4b)."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from goat_mcp.commands.git_environment import variables
from goat_mcp.commands.shell.options.table import OptionTable
from goat_mcp.commands.shell.options.unsafe import unsafe_option
from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, allowed_by

_BEYOND: Mapping[str, Sequence[str]] = {
    "wget *": [
        *(
            "wget 'u -O - v'",
            "wget 'http://h/ --spider '",
            "wget 'u -qO- '",
            "wget --spider -O f u",
            "wget -O f --spider u",
        ),
        *(
            "wget --spider=no u",
            "wget --spider=off u",
            "wget --spider --spider=no u",
            "wget -qOf --spider u",
            "wget --output-document=f --spider u",
        ),
        *("wget --output-document=- -O f u", "wget -O- -O f u", "wget --output-document f u '-qO- '", "wget u -- -O -"),
        *("wget -q -- -O - u", "wget --spider -O u", "wget -O", "wget '--output-document=- '"),
    ],
    "curl *": ["curl -sH @f u", "curl --header @f u", "curl -H@f u", "curl -sSLo f u", "curl 'u' -sO"],
    "sed *": [
        *(
            "sed 'w out' -e p",
            "sed 'w out' f -e p",
            "sed -n 'w out' -e p f",
            "sed -e p -e 'w out' f",
            "sed -nep -e'w out' f",
        ),
        "sed 's/a/b/e' --expression=p",
    ],
    "uniq *": ["uniq f -c", "uniq f -d -- out", "uniq -f 1 a out", "uniq - out"],
    "tree *": ["tree -Po x out", "tree -Lo 2 out", "tree -IPo a b out", "tree -aLRo 2 out"],
    "jest *": ["jest -tc x.js", "jest -wc x.js y", "jest -it=x -c y"],
    "vitest *": ["vitest -tc x.js"],
    "tsc *": ["tsc -tsBuildInfoFile out", "tsc -p../x", "tsc -p/x", "tsc -project ../x", "tsc -outDir x"],
    "pyright *": ["pyright -p../x", "pyright -p/x", "pyright --project=/x", "pyright -pw /x"],
    "git *": [
        *("git stash -- list", "git stash -q list", "git worktree -- list", "git log --diff-merges=remerge"),
        *("git show --diff-merges remerge", "git log --diff-merges=r -p", "git whatchanged --diff-merges=remerge"),
        *("git rev-list --diff-merges=remerge HEAD", "git log --remerge-diff", "git log --diff-m=r"),
    ],
    "docker *": ["docker 'compose ps' up", "docker 'image ls'", "docker 'container list' x"],
    "gh *": ["gh 'pr list'", "gh 'auth status' x"],
    "tar *": ["tar -t --file=h:x", "tar -tfh:x", "tar tf h:x"],
}
_STILL_COVERED: Mapping[str, Sequence[str]] = {
    "wget *": ["wget --spider u", "wget -qSO - u", "wget u -O-", "wget -qO- 'http://h/a b'", "wget --spider -O - u"],
    "curl *": ["curl -H 'X: @f' u", "curl -sSL u", "curl -XGET u"],
    "sed *": ["sed -e p -e q f", "sed p f -n", "sed -n -e p -- f"],
    "tree *": ["tree -L 2 src", "tree -aI x", "tree -L2", "tree -aL 2"],
    "jest *": ["jest -t 'a b'", "jest -it x", "jest -w 4"],
    "tsc *": ["tsc --noEmit -p .", "tsc -b", "tsc -w"],
    "git *": [
        "git stash list",
        "git log --diff-merges=first-parent -p",
        "git log --diff-merges combined",
        "git log -m",
    ],
    "docker *": ["docker compose ps", "docker image ls"],
    "tar *": ["tar -tf x a:b"],
}


def _pairs(table: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(rule, command) for rule, commands in table.items() for command in commands]


@pytest.mark.parametrize(("rule", "command"), _pairs(_BEYOND))
def test_f13_04_parsed_arguments_what_is_more_than_its_program_says_is_asked_about(rule: str, command: str) -> None:
    script = read_script(command)

    reason = allowed_by(script, [CommandPattern.parse(rule)])

    assert script.not_plain == ""
    assert reason


@pytest.mark.parametrize(("rule", "command"), _pairs(_STILL_COVERED))
def test_the_ordinary_use_beside_it_is_covered(rule: str, command: str) -> None:
    assert allowed_by(read_script(command), [CommandPattern.parse(rule)]) == ""


def test_a_table_reads_arguments_in_every_spelling() -> None:
    table = OptionTable("qv", "o", "j", "quiet color", "output", separate="t", numbers=True)

    read = table.read(
        ["-qo", "a", "-ob", "--output=c", "--output", "d", "-j4", "x", "-5", "--color=no", "-t", "e", "--", "-q"]
    )

    assert read.values("-o", "--output") == ("a", "b", "c", "d")
    assert (read.values("-j"), read.values("-t"), read.operands) == (("4",), ("e",), ("x", "-q"))
    assert read.has("-q") and not read.has("--color") and read.late and read.first == "-qo"
    assert [table.read([word]).problem != "" for word in ("-x", "--outp=x", "-tq", "--quietly")] == [True] * 4


_POOLS: Mapping[str, Sequence[str]] = {
    "wget": (
        *("URL", "URL -O - ", "-O", "-", "-O-", "-Olocalhost", "-qO-", "-q", "--spider", "--spider=no", "--spider -O-"),
        *("--output-document", "--output-document=-", "--output-document=localhost", "localhost", "--", "-S", "-qO"),
    ),
    "curl": (
        *("URL", "-o", "-O", "-sS", "-s", "-H", "X: y", "-XGET", "--output", "localhost", "-J", "-L", "-D", "-sO"),
        *("--dump-header", "-c", "--compressed", "-so", "-", "-X", "-A", "--", "-I", "-m", "2", "--max-time=2", "-f"),
    ),
    "sort": (
        *("f", "-o", "out", "-ro", "--output=out", "--outp=out", "-k", "1", "-k1", "-t", "o", "-to", "--", "-u", "-r"),
        *("-S1M", "--sort=general-numeric", "--sort", "-m", "-z", "-", "--key=1", "-nuo", "-T", "."),
    ),
    "sed": (
        *("f", "-n", "-e", "p", "w out", "-i", "s/a/b/w out", "s/a/b/", "-f", "--expression=w out", "--expression=p"),
        *("-ne", "-E", "--", "-s", "-i.bak", "$!d", "--in-place", "-nep", "-ep", "-eWout", "1d;w out", "-z"),
    ),
    "uniq": ("f", "out", "-c", "--", "-f", "1", "-w2", "-s", "-", "-d", "-cd", "--skip-fields=1", "--skip-chars", "+1"),
    "tar": (
        *("t", "tf", "a.tar", "-t", "-f", "-x", "xf", "-C", "out", "--to-command=touch out", "tvf", "--list", "member"),
        *("--file=a.tar", "-c", "--get", "--extract", "x", "-tf", "-tvf", "-v", "--", "-tO", "--file", "ft", "-xf"),
    ),
    "find": (
        *(".", "-name", "f", "-fprint", "out", "-delete", "-print", "-type", "-o", "!", "(", ")", "-fls", "--", "-or"),
        *("-newermt", "2020-01-01", "-exec", "touch", "{}", ";", "+", "-printf", "%p", "-maxdepth", "1", "-quit"),
    ),
    "file": ("f", "-C", "-m", "-b", "--compile", "-bC", "--", "-i", "-F", "x", "-L", "-k", "-e", "soft"),
    "jq": (".", "f", "-r", "-n", "-rn", "--tab", "-c", "-s", "--", "--seq", "input", "-S"),
    "diff": ("f", "out", "-u", "-r", "--", "-q", "--label", "x", "-U", "3", "-U3", "--color", "--from-file=f", "-o"),
    "git": (
        *("log", "diff", "show", "stash", "list", "branch", "tag", "-l", "new", "HEAD", "--", "-p", "-S", "f"),
        *("--output=out", "--output", "out", "--list", "--contains", "worktree", "-o", "--no-index", "-n", "1", "-v"),
        *("--sort", "refname", "reflog", "expire", "--all", "remote", "add", "a", "push", "-u", "status", "-m", "-D"),
    ),
}  # fmt: skip
_RUNS = 80


class _Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"x\n")

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/page"
        server.shutdown()


def _commands(program: str, url: str) -> list[tuple[str, ...]]:
    """Different commands that the tables call safe: all of up to two arguments, and longer ones by chance."""
    pool = [word.replace("URL", url) for word in _POOLS[program]]
    chance = random.Random(program)
    short = [words for length in (0, 1, 2) for words in itertools.product(pool, repeat=length)]
    longer = [tuple(chance.choices(pool, k=chance.randint(3, 6))) for _ in range(6_000)]
    chance.shuffle(short)
    return [words for words in dict.fromkeys((*longer, *short)) if unsafe_option((program, *words)) == ""][:_RUNS]


@pytest.mark.parametrize("program", _POOLS)
def test_f13_04_real_programs_write_no_file_by_any_command_that_is_called_safe(
    tmp_path: Path, url: str, program: str
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    folder = tmp_path / "here"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "no_proxy": "*", **variables()}
    _fill(folder, environment)
    before = _files(folder)
    commands = _commands(program, url)

    for words in commands:
        _run((program, *words), folder, environment)
        changed = _files(folder)
        assert changed == before, (program, *words)

    assert len(commands) >= 10


def _fill(folder: Path, environment: Mapping[str, str]) -> None:
    for name, text in {"f": "1 b\n1 a\n1 a\n", "out": "kept\n", "localhost": "kept\n", "member": "m\n"}.items():
        (folder / name).write_text(text)
    _run(("tar", "-cf", "a.tar", "member"), folder, environment)
    own = {**environment, "GIT_CONFIG_COUNT": "0"}
    for who in ("AUTHOR", "COMMITTER"):
        own |= {f"GIT_{who}_NAME": "n", f"GIT_{who}_EMAIL": "n@example.invalid"}
    for arguments in (("init", "-q"), ("add", "f"), ("commit", "-qm", "x")):
        _run(("git", *arguments), folder, own)
    (folder / "f").write_text("1 b\n1 c\n")


def _run(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
