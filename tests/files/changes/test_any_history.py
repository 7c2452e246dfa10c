"""Whatever happens to a few files: undoing all of it brings back the original bytes, or says honestly where not."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.core.errors import ToolError
from goat_mcp.files.changes.undo import UndoOutcome
from tests.files.changes.keeping import Desk, notebook
from tests.repetitions import examples

NAMES = ("a", "b", "n.ipynb")
Kind = Literal["write", "edit", "cell", "foreign", "delete"]


@dataclass(frozen=True)
class Step:
    kind: Kind
    name: str
    text: str


texts = st.text(alphabet="xyz\n", max_size=6)
steps = st.lists(
    st.builds(
        Step, st.sampled_from(["write", "write", "edit", "cell", "foreign", "delete"]), st.sampled_from(NAMES), texts
    ),
    max_size=8,
)


def contents(desk: Desk) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in desk.top.iterdir()}


async def play(desk: Desk, history: list[Step]) -> set[str]:
    """Do it all; the names of files that something other than the tools has changed."""
    foreign: set[str] = set()
    for step in history:
        path = desk.top / step.name
        try:
            if step.kind == "write":
                await desk.write(path, notebook(step.text) if step.name == "n.ipynb" else step.text)
            elif step.kind == "edit":
                await desk.edit(path, "x", step.text)
            elif step.kind == "cell":
                await desk.edit_cell(path, step.text)
            else:
                before = path.read_bytes() if path.exists() else None
                desk.file(step.name, step.text) if step.kind == "foreign" else path.unlink(missing_ok=True)
                if (path.read_bytes() if path.exists() else None) != before:
                    foreign.add(step.name)
        except ToolError:
            pass  # nothing to edit there: that is a history too
    return foreign


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large)
)
@given(steps)
def test_undoing_all_brings_back_the_original_bytes_or_refuses(history: list[Step]) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            desk = Desk(Path(folder))
            desk.file("a", "x y\n")
            desk.file("n.ipynb", notebook("x"))
            original = contents(desk)
            foreign = await play(desk, history)
            reached = contents(desk)

            attempts = await desk.undo_all()

            refused = {attempt.change.path.name for attempt in attempts if attempt.outcome is UndoOutcome.REFUSED}
            assert refused <= foreign, "only what others have changed is refused"
            undone = {attempt.change.path.name for attempt in attempts if attempt.outcome is UndoOutcome.UNDONE}
            now = contents(desk)
            for name in NAMES:
                if name not in foreign:
                    assert now.get(name) == original.get(name)
                elif name not in undone:
                    assert now.get(name) == reached.get(name), "what was refused is left as it was"

            # And an undo of the undo brings all of it back.
            last = desk.journal.records.newest_first()[
                : sum(attempt.outcome is UndoOutcome.UNDONE for attempt in attempts)
            ]
            assert all(attempt.outcome is UndoOutcome.UNDONE for attempt in await desk.undo().run(last))
            assert contents(desk) == reached

    anyio.run(run)
