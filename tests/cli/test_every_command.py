"""The manners of every command: its output at 80 columns, its --json, its exit code, and three typical mistakes.

A command without a row fails `test_every_command_has_a_row`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from goat_mcp.cli.exit_codes import OK, TOOL_ERROR, USAGE
from goat_mcp.cli.main import app
from tests.cli.terminal_session import CTRL_C, TerminalSession
from tests.quick_start import goat_command

pytestmark = [pytest.mark.e2e]

WEATHER = Path(__file__).resolve().parents[2] / "examples" / "weather_stdio.py"
COLUMNS = 80


@dataclass(frozen=True)
class Mistake:
    """Words that are wrong; `value` is what the error names of them, `next` what it says to do."""

    words: str
    value: str
    next: str
    code: int = USAGE


@dataclass(frozen=True)
class Row:
    """`words`: a run that ends well, or with `code`. `json`: the same with --json; empty if the command has none."""

    words: str
    mistakes: tuple[Mistake, Mistake, Mistake]
    code: int = OK
    json: str | None = None
    lines: bool = False
    """--json prints one document per line."""
    typed: bytes = b""
    """What the person types, and `asked` after which question."""
    asked: str = ""


def option(command: str) -> Mistake:
    return Mistake(f"{command} --jsn", "--jsn", f"See goat-mcp {command.split(' -- ')[0]} --help.")


ROWS: dict[str, Row] = {
    "version": Row(
        "version",
        (
            option("version"),
            Mistake("version x", "(x)", "See goat-mcp version"),
            Mistake("versoin", "versoin", "version?"),
        ),
    ),
    "help": Row(
        "help",
        (
            option("help"),
            Mistake("help lst", "'lst'", "did you mean list"),
            Mistake("help rules x", "'x'", "there are "),
        ),
        json="help call",
    ),
    "completion": Row(
        "completion bash",
        (
            Mistake("completion bash --jsn", "--jsn", "See goat-mcp completion --help."),
            Mistake("completion tcsh", "'tcsh'", "'bash', 'zsh', 'fish'"),
            Mistake("completion", "{bash|zsh|fish}", "See goat-mcp completion"),
        ),
    ),
    "serve": Row(
        "serve",
        (
            option("serve"),
            Mistake("serve --no-token", "--no-token", "belong to --http"),
            Mistake("serve --mode plam", "'plam'", "did you mean plan?"),
        ),
        json="",
        typed=CTRL_C,
        asked="Ctrl-C ends it.",
    ),
    "ui": Row(
        "ui --no-open",
        (
            option("ui"),
            Mistake("ui x", "(x)", "See goat-mcp ui"),
            Mistake("ui --port 99999", "99999", "See goat-mcp ui"),
        ),
        json="",
        typed=CTRL_C,
        asked="served until Ctrl-C",
    ),
    "demo": Row(
        "demo",
        (option("demo"), Mistake("demo x", "(x)", "See goat-mcp demo"), Mistake("dmo", "'dmo'", "did you mean demo?")),
    ),
    "list": Row(
        "list",
        (
            option("list"),
            Mistake("list --tool Gerp", "'Gerp'", "did you mean Grep?"),
            Mistake("list --profile x", "'x'", "Add it under profiles"),
        ),
    ),
    "inspect": Row(
        "inspect weather",
        (
            option("inspect"),
            Mistake("inspect waether", "waether", "weather"),
            Mistake("inspect --dialect gemni", "'gemni'", "gemini"),
        ),
    ),
    "docs": Row(
        "docs Grep",
        (option("docs"), Mistake("docs Gerp", "Gerp", "Did you mean Grep?"), Mistake("docs --preset x", "'x'", "core")),
    ),
    "status": Row(
        "status",
        (
            option("status"),
            Mistake("status waether", "waether", "weather"),
            Mistake("status --set mode=x", "'x'", "'plan'"),
        ),
    ),
    "logs": Row(
        "logs",
        (
            option("logs"),
            Mistake("logs waether", "waether", "weather"),
            Mistake("logs --last many", "'many'", "See goat-mcp logs"),
        ),
        lines=True,
    ),
    "doctor": Row(
        "doctor weather",
        (
            option("doctor"),
            Mistake("doctor waether", "'waether'", "did you mean weather?"),
            Mistake("doctor --workspace", "--workspace", "See goat-mcp doctor"),
        ),
    ),
    "audit": Row(
        "audit show",
        (
            option("audit show"),
            Mistake("audit shwo", "'shwo'", "show"),
            Mistake("audit show --file /no/such", "/no/such", "--file"),
        ),
    ),
    "call": Row(
        "call Glob pattern=*.txt",
        (
            option("call"),
            Mistake("call Gerp pattern=x", "Gerp", "Did you mean Grep?", TOOL_ERROR),
            Mistake("call Grep TODO", "'TODO'", "KEY=VALUE"),
        ),
    ),
    "undo": Row(
        "undo --list",
        (
            option("undo"),
            Mistake("undo --call xyz", "'xyz'", "goat-mcp undo --list"),
            Mistake("undo --last none", "'none'", "See goat-mcp undo"),
        ),
    ),
    "approvals": Row(
        "approvals --all",
        (
            option("approvals"),
            Mistake("approvals nope", "'nope'", "goat-mcp approvals"),
            Mistake("approvals --watch --all", "--watch", "See goat-mcp approvals --help."),
        ),
    ),
    "approve": Row(
        "approve nope",
        (
            option("approve"),
            Mistake("approve", "ID", "See goat-mcp approve --help."),
            Mistake("approve nope --scope", "--scope", "See goat-mcp approve --help."),
        ),
        code=TOOL_ERROR,
        json="",  # it needs a terminal: tests/cli/test_approvals.py
    ),
    "deny": Row(
        "deny nope",
        (
            option("deny"),
            Mistake("deny", "ID", "See goat-mcp deny --help."),
            Mistake("deny nope --reason", "--reason", "See goat-mcp deny --help."),
        ),
        code=TOOL_ERROR,
    ),
    "why": Row(
        "why Bash command=ls",
        (
            option("why"),
            Mistake("why Bash ls", "'ls'", "KEY=VALUE"),
            Mistake("why Bash --input-json {", "--input-json", "See goat-mcp why"),
        ),
    ),
    "rules": Row(
        "rules",
        (
            option("rules"),
            Mistake("rules allow Bsh(ls)", "Bsh(ls)", "did you mean Bash"),
            Mistake("rules allow Bash --expires soon", "soon", "1h"),
        ),
    ),
    "plan": Row(
        "plan list",
        (
            option("plan list"),
            Mistake("plan show nope", "'nope'", "goat-mcp plan list"),
            Mistake("plan aprove nope", "'aprove'", "approve"),
        ),
    ),
    "review": Row(
        "review list",
        (
            option("review list"),
            Mistake("review show nope", "nope", "review list"),
            Mistake("review reject", "name the changes", "--all"),
        ),
    ),
    "trust": Row(
        "trust --list",
        (
            option("trust"),
            Mistake("trust /no/such", "/no/such", "goat-mcp.yaml"),
            Mistake("trust --list --revoke", "--revoke", "give one"),
        ),
    ),
    "lock": Row(
        "lock",
        (
            option("lock"),
            Mistake("lock approve", "name what to approve", "--all"),
            Mistake("lock show nope", "'nope'", "See goat-mcp lock."),
        ),
    ),
    "auth": Row(
        "auth list",
        (
            option("auth list"),
            Mistake("auth login waether", "'waether'", "weather"),
            Mistake("auth login weather", "weather is no HTTP server", "no login"),
        ),
    ),
    "secret": Row(
        "secret list",
        (
            option("secret list"),
            Mistake("secret set A=b", "A", "goat-mcp secret set A"),
            Mistake("secret remove nope", "nope", "secret"),
        ),
    ),
    "import": Row(
        "import --dry-run",
        (
            option("import"),
            Mistake("import cursr", "'cursr'", "did you mean cursor?"),
            Mistake("import --move", "--move", "name the host"),
        ),
    ),
    "install": Row(
        "install gemini --workspace . --dry-run",
        (
            option("install"),
            Mistake("install cursr", "'cursr'", "did you mean cursor?"),
            Mistake("install cursor --workspace /no/such", "/no/such", "existing directory"),
        ),
    ),
    "uninstall": Row(
        "uninstall cursor --dry-run",
        (
            option("uninstall"),
            Mistake("uninstall cursr", "'cursr'", "did you mean cursor?"),
            Mistake("uninstall", "HOST", "See goat-mcp uninstall"),
        ),
    ),
    "eject": Row(
        "eject cursor --dry-run",
        (
            option("eject"),
            Mistake("eject cursr", "'cursr'", "did you mean cursor?"),
            Mistake("eject zed", "zed", "nothing to put back"),
        ),
    ),
    "manifest": Row(
        "manifest list",
        (
            option("manifest list"),
            Mistake("manifest new 1", "'1'", "For example"),
            Mistake("manifest new w --language pyhton", "'pyhton'", "'python'"),
        ),
    ),
    "export": Row(
        "export openai",
        (
            option("export openai"),
            Mistake("export opnai", "'opnai'", "openai"),
            Mistake("export openai --tool Gerp", "'Gerp'", "did you mean Grep?"),
        ),
    ),
    "add": Row(
        "add spare --no-check --dry-run -- true",
        (
            Mistake("add --jsn spare -- true", "--jsn", "See goat-mcp add --help."),
            Mistake("add weather -- true", "weather", "--replace"),
            Mistake("add spare", "COMMAND", "See goat-mcp add"),
        ),
        json="add --json spare --no-check --dry-run -- true",
    ),
    "remove": Row(
        "remove weather --dry-run",
        (
            option("remove"),
            Mistake("remove waether", "waether", "weather"),
            Mistake("remove", "NAME", "See goat-mcp remove"),
        ),
    ),
    "enable": Row(
        "enable weather --dry-run",
        (
            option("enable"),
            Mistake("enable waether", "waether", "weather"),
            Mistake("enable", "NAME", "See goat-mcp enable"),
        ),
    ),
    "disable": Row(
        "disable Bash --dry-run",
        (
            option("disable"),
            Mistake("disable Bsah", "Bsah", "Bash"),
            Mistake("disable", "NAME", "See goat-mcp disable"),
        ),
    ),
    "restart": Row(
        "restart weather",
        (
            option("restart"),
            Mistake("restart waether", "waether", "weather"),
            Mistake("restart", "NAME", "See goat-mcp restart"),
        ),
    ),
    "config": Row(
        "config get output",
        (
            option("config get"),
            Mistake("config get output.max_char", "output.max_char", "output.max_chars"),
            Mistake("config set mode plam", "plam", "plan"),
        ),
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with a workspace, an upstream that works, and hosts. Each test works in a copy."""
    home = tmp_path_factory.mktemp("manners") / "home"
    config, project, cursor = home / ".config" / "goat-mcp", home / "project", home / ".cursor"
    for folder in (config, project, cursor):
        folder.mkdir(parents=True)
    entry = {"command": sys.executable, "args": [str(WEATHER)]}
    (config / "upstreams.json").write_text(json.dumps({"mcpServers": {"weather": entry}}))
    (cursor / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": {"command": "notes-server"}}}))
    (project / "notes.txt").write_text("one\n")
    run(home, "call Write content=two --allowed-tool Write file_path=" + str(project / "new.txt"))
    run(home, "install cursor --workspace .")
    run(home, "list")
    return home


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(home, tmp_path / "home", symlinks=True))


def environment(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(home)}


def run(home: Path, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        goat_command(*words.split()),
        cwd=home / "project",
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def with_json(words: str) -> str:
    """`--json` where the command reads it: before what belongs to another command."""
    before, dashes, after = words.partition(" -- ")
    return f"{before} --json{dashes}{after}"


def too_wide(shown: str) -> Sequence[str]:
    """Lines over 80 columns, unless a single word is too long, it is a command to copy, or a line of a diff."""
    wide = [line for line in shown.splitlines() if len(line) > COLUMNS and line[0] not in "+-"]
    return [
        line
        for line in wide
        if max(map(len, line.split())) <= COLUMNS - 24 and not line.lstrip().startswith("goat-mcp ")
    ]


def test_every_command_has_a_row() -> None:
    assert set(ROWS) == set(app.list_commands(click.Context(app)))


@pytest.mark.parametrize("command", ROWS)
def test_its_output_fits_80_columns(folder: Path, command: str) -> None:
    row = ROWS[command]
    with TerminalSession(
        goat_command(*row.words.split()), cwd=folder / "project", variables=environment(folder), columns=COLUMNS
    ) as session:
        if row.asked:
            session.wait_for(row.asked)
            session.interrupt() if row.typed == CTRL_C else session.type(row.typed)
        code = session.end(60)

    assert code == row.code, session.shown
    assert session.shown.strip()
    assert not [line for line in session.shown.splitlines() if line.startswith('{"')], "a JSON log line"
    if command not in ("completion", "export"):  # what programs read
        assert too_wide(session.shown) == []


@pytest.mark.parametrize("command", [name for name, row in ROWS.items() if row.json != ""])
def test_its_json_is_one_document(folder: Path, command: str) -> None:
    row = ROWS[command]

    done = run(folder, with_json(row.json or row.words) if "--json" not in (row.json or "") else row.json or "")

    assert done.returncode == row.code, done.stderr
    for text in done.stdout.splitlines() if row.lines else [done.stdout]:
        json.loads(text)


@pytest.mark.parametrize(
    ("command", "mistake"),
    [pytest.param(name, mistake, id=mistake.words) for name, row in ROWS.items() for mistake in row.mistakes],
)
def test_its_errors_name_the_value_and_the_next_step(folder: Path, command: str, mistake: Mistake) -> None:
    done = run(folder, mistake.words)

    text = done.stdout + done.stderr if command == "call" else done.stderr
    assert (done.returncode, mistake.value in text, mistake.next in text) == (mistake.code, True, True), text
    if command != "call":
        assert done.stdout == ""


@pytest.mark.parametrize(
    ("command", "mistake"),
    [
        pytest.param(name, row.mistakes[1], id=row.mistakes[1].words)
        for name, row in ROWS.items()
        if row.json != "" and row.mistakes[1].code == USAGE
    ],
)
def test_its_errors_are_one_json_line(folder: Path, command: str, mistake: Mistake) -> None:
    done = run(folder, with_json(mistake.words))

    error = json.loads(done.stderr)["error"]
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (mistake.code, "", 1)
    assert mistake.value in error["message"]
    assert mistake.next in error["message"] + error["suggestion"]
