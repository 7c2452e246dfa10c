"""Completion: what Tab offers, that nothing is started for it, and that it never prints an error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.calls.approvals.record import Kind, Request
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.state.directory import StateDirectory
from tests.cli.test_call import run
from tests.quick_start import goat_command

CONFIG = "profiles: {work: {}}\ncatalog: {presets: {mine: [Read]}}\n"
STORED = {"tools": [{"name": "search_code"}, {"name": "odd name"}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    config, catalog = tmp_path / ".config" / "goat-mcp", tmp_path / "state" / "catalog"
    config.mkdir(parents=True)
    catalog.mkdir(parents=True)
    (config / "upstreams.json").write_text(json.dumps({"mcpServers": {"github": {"command": "x"}, "git": {}}}))
    (config / "goat-mcp.yaml").write_text(CONFIG)
    (catalog / "github-0123456789abcdef.json").write_text("head\n" + json.dumps(STORED))
    (catalog / "gone-0123456789abcdef.json").write_text("head\n" + json.dumps(STORED))
    return tmp_path


def offered(home: Path, line: str) -> list[str]:
    """What Tab offers at the end of `line`, which says `goat-mcp` in front."""
    words = f"goat-mcp {line}".split(" ")
    variables = {
        "_GOAT_MCP_COMPLETE": "bash_complete",
        "COMP_CWORD": str(len(words) - 1),
        "COMP_WORDS": " ".join(words),
    }
    done = run(cwd=home, variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
    return [entry.partition(",")[2] for entry in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ins", ["install", "inspect"]),
        ("rules for", ["forget"]),
        ("install claude-", ["claude-code", "claude-desktop"]),
        ("eject kil", ["kilo", "kilo-cli"]),
        ("doctor g", ["git", "github"]),
        ("logs gith", ["github"]),
        ("auth login gi", ["git", "github"]),
        ("call Gre", ["Grep"]),
        ("rules allow Gre", ["Grep"]),
        ("rules test Gre", ["Grep"]),
        ("approve 0", []),
        ("remove gith", ["github"]),
        ("restart gith", ["github"]),
        ("disable git", ["git", "github"]),
        ("list --server gith", ["github"]),
        ("install cursor --mode pl", ["plan"]),
        ("call mcp__github__s", ["mcp__github__search_code"]),
        ("call mcp__gone", []),
        ("inspect gi", ["git", "github"]),
        ("list --mode d", ["default", "dontAsk"]),
        ("list --preset m", ["mine"]),
        ("list --preset c", ["claude_code", "core"]),
        ("list --profile ", ["work"]),
        ("list --toolset te", ["teams"]),
        ("list --disallowed-tool bas", ["Bash"]),
        ("why --http --mo", ["--mode"]),
        ("nothing --", ["--no-color", "--version", "--help"]),
        ("call Grep --profile x", []),
        ("remove gi", ["git", "github"]),
        ("restart gith", ["github"]),
        ("disable Gre", ["Grep"]),
        ("enable mcp__github__s", ["mcp__github__search_code"]),
        ("config set output.m", ["output.max_chars"]),
        ("config preset m", ["mine"]),
        ("help au", ["audit", "auth"]),
        ("help audit s", ["show"]),
        ("help list ", []),
        ("help nope ", []),
    ],
)
def test_tab_offers_what_fits(home: Path, line: str, words: list[str]) -> None:
    assert offered(home, line) == words


def test_what_waits_is_offered(home: Path) -> None:
    store = ApprovalStore(StateDirectory(home / "state"))
    found = store.add(Request(Kind.CALL, "s", "Bash: ls", "local"))

    assert [offered(home, f"{word} {found.id[:4]}") for word in ("approve", "deny", "approvals")] == [
        [found.short_id]
    ] * 3


def test_all_hosts_are_offered(home: Path) -> None:
    assert offered(home, "install ") == sorted(HOSTS)


def test_servers_of_a_file_that_is_named_are_offered(home: Path) -> None:
    (home / "mine.json").write_text(json.dumps({"mcpServers": {"weather": {}}}))

    assert offered(home, "doctor --upstreams mine.json w") == ["weather"]


def test_a_name_that_a_shell_would_run_or_split_is_not_offered(home: Path) -> None:
    names = ["$(touch made)", "`id`", "a;b", "a b", "a\nb", "a*", "a&b", "a>b", "a'b", "ok-1.x@y"]
    file = home / "other.json"
    file.write_text(json.dumps({"mcpServers": {name: {"command": "x"} for name in names}}))

    assert offered(home, f"list --upstreams {file} --server ") == ["ok-1.x@y"]


@pytest.mark.parametrize("broken", ["{", "[]", '{"mcpServers": 3}', "\xff"])
def test_a_broken_file_offers_nothing_and_says_nothing(home: Path, broken: str) -> None:
    for name in ("upstreams.json", "goat-mcp.yaml"):
        (home / ".config" / "goat-mcp" / name).write_text(broken, "latin-1")

    assert offered(home, "doctor ") == []
    assert offered(home, "list --profile ") == []


@pytest.mark.real_processes
@pytest.mark.parametrize(
    ("line", "not_loaded"),
    [
        ("call Gre", ("pydantic", "mcp", "goat_mcp.gateway.gateway", "rich")),
        ("install cl", ("mcp", "goat_mcp.gateway.gateway", "rich")),
    ],
)
def test_nothing_slow_is_loaded_for_it(home: Path, line: str, not_loaded: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom goat_mcp.cli.main import main\n"
        "try: main()\nexcept SystemExit: print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    words = f"goat-mcp {line}"
    environment = {"HOME": str(home), "_GOAT_MCP_COMPLETE": "bash_complete", "COMP_CWORD": "2", "COMP_WORDS": words}

    done = subprocess.run(
        [sys.executable, "-c", code, *not_loaded], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"
    assert len(done.stdout.splitlines()) > 1


def test_bash_completes_with_the_printed_script(home: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (home / "bin").mkdir()
    program = home / "bin" / "goat-mcp"
    program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in goat_command()) + ' "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(goat-mcp completion bash)"; COMP_WORDS=(goat-mcp inst); COMP_CWORD=1; _goat_mcp_completion goat-mcp'
    )

    done = subprocess.run(
        [bash, "--norc", "-c", script + '; echo "${COMPREPLY[@]}"'],
        env={"PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": str(home)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )

    assert (done.stdout, done.stderr) == ("install\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(home: Path, shell: str) -> None:
    done = run("completion", shell, cwd=home)
    document = json.loads(run("completion", shell, "--json", cwd=home).stdout)

    assert done.returncode == 0
    assert f"_GOAT_MCP_COMPLETE={shell}_complete" in done.stdout
    assert document == {"shell": shell, "script": done.stdout.removesuffix("\n")}


def test_another_shell_is_a_mistake_that_names_those_there_are(home: Path) -> None:
    done = run("completion", "tcsh", cwd=home)

    assert done.returncode == 1
    assert "'tcsh'" in done.stderr and "'bash', 'zsh', 'fish'" in done.stderr
