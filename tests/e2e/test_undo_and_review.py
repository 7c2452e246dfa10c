"""A person at a terminal undoes what a model changed, and decides about what waits, beside a server that runs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from mcp_types import TextResourceContents

from tests.e2e.conftest import UNASKED
from tests.e2e.goat import Launch, connected
from tests.e2e.visits import FORMS, NOBODY, Kind, SeekNode, call, every_kind, visit
from tests.quick_start import goat_command

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

COMMAND_TIMEOUT_S = 60


def run(launch: Launch, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the person's, at a terminal."""
    ours, theirs = pty.openpty()
    try:
        return subprocess.run(
            goat_command(*words),
            cwd=launch.workspace,
            env=launch.environment,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.fixture
def reviewing(launch: Launch) -> Launch:
    return replace(launch, options=(*UNASKED, "--set", "files.review_mode=true"))


async def test_what_a_client_changed_is_undone_while_its_server_runs(launch: Launch) -> None:
    """R-FILE-8: the server then tells the session that it knows another content."""
    launch = replace(launch, options=UNASKED)
    file, created = launch.workspace / "notes.txt", launch.workspace / "new.txt"
    file.write_text("one\n")
    async with connected(launch, "auto") as client:
        await client.call_tool("Read", {"file_path": str(file)})
        await client.call_tool("Edit", {"file_path": str(file), "old_string": "one", "new_string": "two"})
        await client.call_tool("Write", {"file_path": str(created), "content": "x"})
        changed = (file.read_text(), created.exists())

        undone = run(launch, "undo", "--last", "2")
        after = await client.call_tool("Write", {"file_path": str(file), "content": "three\n"})

    assert changed == ("two\n", True)
    assert undone.returncode == 0, undone.stderr
    assert [line.split(" (")[0] for line in undone.stdout.splitlines()[:2]] == [
        f"removed again: {created}",
        f"restored: {file}",
    ]
    assert (file.read_text(), created.exists()) == ("one\n", False)
    assert after.is_error
    assert "[E_STALE]" in str(after.content)


@every_kind
async def test_the_person_behind_the_client_approves_rejects_or_keeps_a_change(
    reviewing: Launch, seek_node: SeekNode, kind: Kind
) -> None:
    files = [reviewing.workspace / f"{number}.txt" for number in range(3)]
    answers: list[dict[str, Any]] = [
        {"action": "accept", "content": {"decision": "approve"}},
        {"action": "accept", "content": {"decision": "reject", "feedback": "Say why"}},
        {"action": "decline"},
    ]

    seen = await visit(
        kind,
        reviewing,
        [call("Write", file_path=str(file), content="x\n") for file in files],
        {FORMS: answers},
        node=seek_node,
    )

    assert [file.exists() for file in files] == [True, False, False]
    assert seen.texts[0] == f"Created {files[0]} (1 line).\n[the user approved this change]"
    assert "They said: Say why" in seen.texts[1]
    assert seen.texts[2].startswith("Staged as change ")
    assert seen.forms[0]["message"] == (
        f"Write wants to create {files[0]}:\n\n--- {files[0]}\n+++ {files[0]}\n@@ -0,0 +1 @@\n+x"
    )
    waiting = json.loads(run(reviewing, "review", "list", "--json").stdout)
    assert [entry["path"] for entry in waiting] == [str(files[2])]


async def test_a_change_waits_under_goat_review_until_it_is_applied_at_the_terminal(reviewing: Launch) -> None:
    file = reviewing.workspace / "notes.txt"
    file.write_text("one\n")
    async with connected(reviewing, "auto") as client:
        await client.call_tool("Read", {"file_path": str(file)})
        staged = await client.call_tool("Edit", {"file_path": str(file), "old_string": "one", "new_string": "two"})
        (listed,) = (await client.read_resource("goat://review")).contents
        before = file.read_text()
        assert isinstance(listed, TextResourceContents)
        (entry,) = json.loads(listed.text)["waiting"]

        applied = run(reviewing, "review", "apply", entry["id"])
        again = await client.call_tool("Edit", {"file_path": str(file), "old_string": "two", "new_string": "three"})
        (after,) = (await client.read_resource("goat://review")).contents

    assert not staged.is_error
    assert before == "one\n"
    assert applied.returncode == 0, applied.stderr
    assert file.read_text() == "two\n"
    assert not again.is_error
    assert isinstance(after, TextResourceContents)
    assert [waiting["id"] for waiting in json.loads(after.text)["waiting"]] != [entry["id"]]


async def test_a_model_cannot_decide_or_undo_by_a_command(reviewing: Launch, seek_node: SeekNode) -> None:
    reviewing = replace(reviewing, options=(*reviewing.options, "--set", "sandbox=off"))
    file = reviewing.workspace / "new.txt"
    program = f"{sys.executable} -m goat_mcp"
    steps = [
        call("Write", file_path=str(file), content="x"),
        call("Bash", command=f"{program} review apply --all; {program} undo; true"),
    ]

    seen = await visit(Kind("python", "2026-07-28"), reviewing, steps, NOBODY, node=seek_node)

    assert seen.texts[1].count("a command that a model runs cannot") == 2
    assert not file.exists()
