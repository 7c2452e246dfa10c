"""The documents say what is true: their commands run, their settings load, their links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from goat_mcp.settings.loading import load_settings
from tests.quick_start import goat_command, script_command

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("design/*.md"), *ROOT.glob("examples/*.md")]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
START_TIMEOUT_S = 60


def blocks(document: Path, language: str) -> list[str]:
    return [body for found, body in _FENCE.findall(document.read_text()) if found == language]


def commands() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for block in blocks(document, "sh"):
            if "#!/" in block:
                continue  # a file of the reader's, which the test of its page writes and runs
            for line in block.splitlines():
                command = line.split("  #")[0].strip()
                if command:
                    yield document.name, command


COMMANDS = list(commands())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project beside a home in which Claude Desktop has a server."""
    project, claude = tmp_path / "project", tmp_path / "home" / ".config" / "Claude"
    project.mkdir()
    claude.mkdir(parents=True)
    (project / "README.md").write_text("# Project\n\nTODO: write it\n")
    command, *words = script_command(ROOT / "examples" / "weather_stdio.py")
    servers = json.dumps({"mcpServers": {"weather": {"command": command, "args": words}}})
    (project / "servers.json").write_text(servers)
    (claude / "claude_desktop_config.json").write_text(servers)
    return project


def environment(folder: Path) -> dict[str, str]:
    ours = {"GOAT_MCP_STATE_DIR": str(folder.parent / "state"), "HOME": str(folder.parent / "home")}
    return {**os.environ, **ours}


@pytest.mark.e2e
@pytest.mark.parametrize("command", [command for _, command in COMMANDS if command.startswith("goat-mcp")])
def test_a_documented_goat_mcp_command_works(command: str, folder: Path) -> None:
    given = shlex.split(command)[1:]
    words = goat_command(*given)

    if given[0] == "serve":
        words = [word if word != "127.0.0.1:8765" else "127.0.0.1:0" for word in words]
        assert _is_served(words, folder)
    elif given[0] == "ui":
        assert _is_opened(words, folder)
    else:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout or done.stderr  # what there is none of is told on stderr


def _is_served(words: list[str], folder: Path) -> bool:
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdin and process.stdout and process.stderr
        if "--http" in words:
            deadline = time.monotonic() + START_TIMEOUT_S
            while time.monotonic() < deadline and (line := process.stderr.readline()):
                if b"listening on" in line:
                    return True
            return False
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        return json.loads(process.stdout.readline())["id"] == 1
    finally:
        process.terminate()
        process.communicate(timeout=10)


def _is_opened(words: list[str], folder: Path) -> bool:
    """The link is printed; there is no browser here that it could open."""
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**environment(folder), "BROWSER": "true"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        return b"/ui/login?token=" in process.stdout.readline()
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for document in DOCUMENTS for target in re.findall(r"`make ([a-z]+)`", document.read_text())}
    named |= {command.split()[1] for _, command in COMMANDS if command.startswith("make ")}

    assert named
    assert named <= targets


def test_every_kind_of_documented_command_is_run_or_checked() -> None:
    assert {command.split()[0] for _, command in COMMANDS} <= {"goat-mcp", "make"}


def test_the_documented_settings_load(tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "README.md", "yaml")
    file = tmp_path / "goat-mcp.yaml"
    file.write_text(block)

    settings = load_settings({}, config_file=file)

    assert settings.mode.value == yaml.safe_load(block)["mode"]
    assert settings.permissions.deny == ("Bash(git push *)",)


def test_the_readmes_host_config_is_the_example_file() -> None:
    (block,) = blocks(ROOT / "README.md", "json")
    assert json.loads(block) == json.loads((ROOT / "claude_desktop_config.example.json").read_text())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document: Path) -> None:
    missing = [link for link in _LINK.findall(document.read_text()) if not (document.parent / link.strip()).exists()]
    assert missing == []


@pytest.mark.parametrize(
    ("page", "number"),
    [
        (page, number)
        for page in sorted(path.name for path in (ROOT / "docs").glob("*.md"))
        for number, block in enumerate(blocks(ROOT / "docs" / page, "yaml"))
        if "\nkind: " not in block  # a manifest: test_first_tool writes and uses those
    ],
)
def test_documented_settings_load(page: str, number: int, tmp_path: Path) -> None:
    file = tmp_path / "goat-mcp.yaml"
    file.write_text(blocks(ROOT / "docs" / page, "yaml")[number])

    assert load_settings({}, config_file=file).model_fields_set
