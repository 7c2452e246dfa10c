"""Questions to the person behind a client, with clients that others wrote, of both eras, over stdio and HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import fill
from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.visits import FORMS, NOBODY, Kind, SeekNode, call, every_kind, visit

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

Target = Launch | HttpGoat
Reach = Callable[[str], Target]
every_transport = pytest.mark.parametrize("transport", ["stdio", "http"])

WHICH_ENGINE = "Which database should it use?"
ENGINE = {
    "question": WHICH_ENGINE,
    "header": "Database",
    "options": [
        {"label": "PostgreSQL", "description": "there already"},
        {"label": "SQLite", "description": "no server"},
    ],
}
WHICH_CHECKS = "Which checks should run?"
CHECKS = {
    "question": WHICH_CHECKS,
    "header": "Checks",
    "multiSelect": True,
    "options": [
        {"label": "Lint", "description": ""},
        {"label": "Types", "description": ""},
        {"label": "Tests", "description": ""},
    ],
}


def asking(*questions: Any) -> dict[str, Any]:
    return call("AskUserQuestion", questions=list(questions))


def accepts(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.fixture
def asking_goat(request: pytest.FixtureRequest, shared_launch: Launch) -> Reach:
    """By transport: the HTTP one is shared, a stdio client starts its own."""
    return lambda transport: request.getfixturevalue("shared_http") if transport == "http" else shared_launch


@every_transport
@every_kind
async def test_each_answer_a_person_can_give_reaches_the_model(
    asking_goat: Reach, seek_node: SeekNode, transport: str, kind: Kind
) -> None:
    several = {"q1": ["Lint", "Tests"]}
    steps = [asking(ENGINE)] * 4 + [asking(CHECKS), asking(ENGINE, CHECKS)]
    given = [
        accepts(q1="SQLite"),
        accepts(q1_other="  DuckDB  "),
        {"action": "decline"},
        {"action": "cancel"},
        accepts(**several, q1_other="Spelling"),
        accepts(q1="PostgreSQL"),
    ]

    seen = await visit(kind, asking_goat(transport), steps, {FORMS: given}, node=seek_node)

    facts = [result.get("structuredContent") or result["_meta"]["goat-mcp/facts"] for result in seen.results]
    assert facts == [
        {"answers": {WHICH_ENGINE: "SQLite"}, "status": "answered"},
        {"answers": {WHICH_ENGINE: "DuckDB"}, "status": "answered"},
        {"answers": {}, "status": "declined"},
        {"answers": {}, "status": "cancelled"},
        {"answers": {WHICH_CHECKS: "Lint, Tests, Spelling"}, "status": "answered"},
        {"answers": {WHICH_ENGINE: "PostgreSQL"}, "status": "incomplete"},
    ]
    assert seen.texts[0] == f"{WHICH_ENGINE}\n-> SQLite"
    assert "declined" in seen.texts[2]
    assert not any(result.get("isError") for result in seen.results)
    assert [form["message"] for form in seen.forms] == [WHICH_ENGINE] * 4 + [
        WHICH_CHECKS,
        f"{WHICH_ENGINE}\n\n{WHICH_CHECKS}",
    ]
    assert seen.forms[0]["requestedSchema"]["properties"]["q1"] == {
        "type": "string",
        "oneOf": [
            {"const": "PostgreSQL", "title": "PostgreSQL - there already"},
            {"const": "SQLite", "title": "SQLite - no server"},
        ],
        "title": "Database",
        "description": WHICH_ENGINE,
    }


@every_transport
@every_kind
async def test_a_client_without_forms_gets_the_questions_as_text_at_once_ask_002(
    asking_goat: Reach, seek_node: SeekNode, transport: str, kind: Kind
) -> None:
    again = call("AskUserQuestion", questions=[ENGINE], answers={WHICH_ENGINE: "SQLite"})

    seen = await visit(kind, asking_goat(transport), [asking(ENGINE, CHECKS), again], NOBODY, node=seek_node)

    assert seen.texts == [
        "No form could be shown. Ask the user in the conversation:\n\n"
        "1. Which database should it use?\n"
        "   1) PostgreSQL - there already\n   2) SQLite - no server\n   3) something else\n\n"
        "2. Which checks should run? (several may be chosen)\n"
        "   1) Lint\n   2) Types\n   3) Tests\n   4) something else\n"
        '\nThen call AskUserQuestion again with the same questions and "answers": {question: answer}.',
        "Which database should it use?\n-> SQLite",
    ]
    assert seen.forms == []


@pytest.fixture(scope="module")
def planning_launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    folder = tmp_path_factory.mktemp("planning")
    options = ("--mode", "plan", "--set", 'permissions.allow=["Write"]')
    return Launch(folder, fill(folder / "workspace"), options)


@pytest.fixture(scope="module")
def planning_http(planning_launch: Launch) -> Generator[HttpGoat]:
    with http_goat(planning_launch) as goat:
        yield goat


@every_transport
@every_kind
async def test_a_plan_is_rejected_edited_or_approved_and_only_then_files_change_plan_001(
    planning_http: HttpGoat, planning_launch: Launch, seek_node: SeekNode, transport: str, kind: Kind
) -> None:
    """One session keeps planning until the person says yes; a session of its own approves right away."""
    target = planning_http if transport == "http" else planning_launch
    run = secrets.token_hex(4)
    files = [planning_launch.workspace / f"{run}-{number}.txt" for number in range(4)]
    writes = [call("Write", file_path=str(file), content="x") for file in files]
    plan = call("ExitPlanMode", plan=f"# Plan {run}\n1. Write")
    rejects = accepts(decision="reject", feedback="Say where")
    edits = [accepts(decision="edit"), accepts(plan=f"# Plan {run}\n1. Write there")]

    changed = await visit(
        kind,
        target,
        [writes[0], plan, writes[1], plan, writes[2]],
        {FORMS: [rejects, *edits]},
        node=seek_node,
        name=f"e2e-edits-{run}",
    )
    approved = await visit(
        kind,
        target,
        [call("ExitPlanMode", plan=f"# Other plan {run}"), writes[3]],
        {FORMS: [accepts(decision="approve")]},
        node=seek_node,
        name=f"e2e-approves-{run}",
    )

    before, rejected, still_before, edited, after = changed.texts
    assert "[E_PLAN_MODE]" in before and "[E_PLAN_MODE]" in still_before
    assert rejected.startswith("The user did not approve the plan. They said: Say where\n")
    assert edited.startswith("The plan was approved by the user. Permission mode is now default")
    assert f"It now reads:\n\n# Plan {run}\n1. Write there" in edited
    assert after == f"Created {files[2]} (1 line)."
    assert approved.texts[0].startswith("The plan was approved by the user.")
    assert approved.texts[1] == f"Created {files[3]} (1 line)."
    assert [file.exists() for file in files] == [False, False, True, True]


@pytest.fixture(scope="module")
def careful_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("careful") / "workspace")


@pytest.fixture(scope="module")
def careful_http(careful_workspace: Path) -> Generator[HttpGoat]:
    """Over HTTP we ask ourselves (design D8)."""
    with http_goat(Launch(careful_workspace.parent, careful_workspace)) as goat:
        yield goat


@every_kind
async def test_over_http_a_command_runs_once_the_person_allows_it(
    careful_http: HttpGoat, careful_workspace: Path, seek_node: SeekNode, kind: Kind
) -> None:
    refused, allowed = careful_workspace / "refused", careful_workspace / "allowed"
    allowed.unlink(missing_ok=True)
    given = [accepts(decision="deny"), {"action": "decline"}, {"action": "cancel"}, accepts(decision="allow_once")]
    steps = [call("Bash", command=f"touch {refused}")] * 3 + [call("Bash", command=f"touch {allowed}; echo ran")]

    seen = await visit(kind, careful_http, steps, {FORMS: given}, node=seek_node)

    assert ["the user refused Bash" in text and "[E_PERMISSION]" in text for text in seen.texts[:3]] == [True] * 3
    assert seen.texts[3] == "ran"
    shown = [form["message"].splitlines() for form in seen.forms]
    assert [(lines[0], lines[-1]) for lines in shown] == [
        ("Allow Bash? (mode default)", f"command: {step['arguments']['command']}") for step in steps
    ]
    assert (refused.exists(), allowed.exists()) == (False, True)
