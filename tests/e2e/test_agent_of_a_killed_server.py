"""Going on with an agent whose goat-mcp was killed: what it had done is on disk after each of its turns."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.goat import Launch
from tests.e2e.processes import end
from tests.e2e.scripted_backend import BACKEND_KEY, MODEL, Held, Says, ScriptedBackend, calls
from tests.e2e.wire import Wire, text_of

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e]

BOUND_S = 60.0


def wired(goat: Launch) -> Wire:
    return Wire(goat.command, goat.environment, goat.workspace, goat.folder / "stderr")


@pytest.mark.parametrize("by", ["id", "name"])
def test_an_agent_is_resumed_after_its_server_was_killed(launch: Launch, by: str) -> None:
    with ScriptedBackend().running() as backend:
        settings = {"base_url": backend.url, "key": "${BACKEND_KEY}", "model": MODEL}
        options = [part for name, value in settings.items() for part in ("--set", f"agent.{name}={value}")]
        goat = Launch(launch.folder, launch.workspace, tuple(options), {"BACKEND_KEY": BACKEND_KEY})
        held = Held(Says("never heard"))
        backend.script(calls("Glob", pattern="*.nothing"), held)
        with wired(goat) as wire:
            wire.handshake()
            arguments = {"description": "a task", "prompt": "Begin.", "run_in_background": True, "name": "kk"}
            agent = text_of(wire.call("Agent", arguments)).splitlines()[0].removeprefix("Task started: ")
            assert held.arrived.wait(BOUND_S)
            wait_for_text(goat.folder / "state" / "agents", "No files found")
            wire.process.kill()
            end(wire.process)  # pyright: ignore[reportArgumentType]  # bytes or text makes no difference to ending it
        held.release.set()
        backend.forget()
        backend.script(Says("Whole."))

        with wired(goat) as wire:
            wire.handshake()
            output = text_of(wire.call("TaskOutput", {"task_id": agent}))
            again = text_of(
                wire.call(
                    "Agent", {"description": "go on", "prompt": "Go on.", "resume": agent if by == "id" else "kk"}
                )
            )

        said = [message.get("content") for message in backend.asked[0].messages if message["role"] != "assistant"]
    assert output.startswith(f"Task {agent}: orphaned")
    assert again.startswith("Whole.\n")
    assert said[1:] == ["Begin.", "No files found", "Go on."]


def wait_for_text(folder: Path, text: str) -> None:
    ends_at_s = time.monotonic() + BOUND_S
    while not any(text in path.read_text() for path in folder.rglob("[!.]*.jsonl")):
        assert time.monotonic() < ends_at_s, f"no transcript holds {text!r}"
        time.sleep(0.05)  # another process writes it
