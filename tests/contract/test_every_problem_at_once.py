"""A call with several wrong fields hears of all of them at once, in our words: tools.md, "Arguments"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.errors import ErrorCode, ToolError
from tests.contract.test_every_tool import TOOLS

BY_NAME: Mapping[str, AnyTool] = {tool.spec.name: tool for tool in TOOLS}
QUESTION = {"question": "Which?", "header": "a header too long", "options": [{"label": "only"}]}
EDIT = {"file_path": "/f", "old_string": "a"}

WRONG: list[tuple[str, dict[str, Any], list[str]]] = [
    ("Bash", {"command": 1, "timeout": 0}, ["command: wants text; got int 1", "timeout: wants more than 0; got int 0"]),
    ("Bash", {"timeout_s": "soon"}, ['timeout_s: wants a number of seconds; got str "soon"', "command: is required"]),
    (
        "Read",
        {"file_path": 1, "pages": "3-1", "end_line": "last"},
        [
            'end_line: wants a line number; got str "last"',
            "file_path: wants text; got int 1",
            "pages: wants pages from 1 on, the first before the last; got '3-1'",
        ],
    ),
    (
        "Write",
        {"content": [], "conten": ""},
        ["conten: unknown field; did you mean content?", "file_path: is required", "content: wants text"],
    ),
    (
        "Edit",
        {"file_path": 1},
        ["file_path: wants text; got int 1", "old_string and new_string: required"],
    ),
    (
        "Edit",
        {**EDIT, "edits": [{"old_string": "a"}]},
        ["edits.0.new_string: is required", "edits: send it instead of old_string, new_string and replace_all"],
    ),
    ("Glob", {"limit": 5000}, ["pattern: is required", "limit: wants at most 1000; got int 5000"]),
    (
        "Grep",
        {"case_sensitive": "perhaps", "recursive": 7, "exclude": [1], "output_mode": "lines", "-A": -1},
        [
            'case_sensitive: wants true or false; got str "perhaps"',
            "exclude: wants a list of globs; got int 1 in it",
            "recursive: wants true or false; got int 7",
            "pattern: is required",
            "output_mode: wants 'files_with_matches', 'content' or 'count'; got str \"lines\"",
            "-A: wants at least 0; got int -1",
        ],
    ),
    ("TaskOutput", {"timeout": 600_001}, ["task_id: is required", "timeout: wants at most 600000; got int 600001"]),
    (
        "TaskStop",
        {"task_id": "a", "shell_id": "b", "force": True},
        ["force: unknown field", "shell_id: is the old name of task_id"],
    ),
    (
        "TodoWrite",
        {"todos": [{"content": "", "status": "done"}] * 101},
        [
            "todos: wants at most 100 items; got 101",
            "todos.0.content: is empty",
            "todos.0.status: wants 'pending', 'in_progress' or 'completed'; got str \"done\"",
            "todos.0.activeForm: is required",
        ],
    ),
    ("Config", {"value": [1]}, ["setting: is required", "value: wants text, a number, true or false; got list [1]"]),
    (
        "ExitPlanMode",
        {"plan": "x" * 100_001, "allowedPrompts": [{"prompt": "x" * 501}]},
        [
            "plan: wants at most 100000 characters; got 100001",
            "allowedPrompts.0.tool: is required",
            "allowedPrompts.0.prompt: wants at most 500 characters; got 501",
        ],
    ),
    (
        "AskUserQuestion",
        {"questions": [QUESTION, QUESTION], "answers": {"What?": 1}},
        [
            "questions.0.header: wants at most 12 characters; got 17",
            "questions.0.options.0.description: is required",
            "questions.1.header: wants at most 12 characters; got 17",
            "questions.1.options.0.description: is required",
            "answers: 'What?' wants text, or a list of texts; got int 1",
            "questions must differ from each other",
            "answers: 'What?' is none of the questions",
            "questions.0.options: wants 2 to 4 options, got 1",
            "questions.1.options: wants 2 to 4 options, got 1",
        ],
    ),
    ("WebFetch", {"offset": -1}, ["url: is required", "offset: wants at least 0; got int -1"]),
    (
        "WebSearch",
        {"query": "a", "allowed_domains": ["a/b"], "blocked_domains": ["b.org"]},
        [
            "query: wants at least 2 characters; got 1",
            "allowed_domains: wants domains such as example.com",
            "allowed_domains and blocked_domains cannot be combined",
        ],
    ),
    (
        "Agent",
        {"description": "d", "prompt": "", "name": "two words", "max_turns": 0},
        [
            "prompt: is empty",
            "name: wants text that matches ^[A-Za-z0-9]",
            "max_turns: wants at least 1; got int 0",
        ],
    ),
    ("ListMcpResources", {"server": 1, "servr": ""}, ["servr: unknown field", "server: wants text; got int 1"]),
    ("ReadMcpResource", {"server": 1}, ["server: wants text; got int 1", "uri: is required"]),
    (
        "NotebookEdit",
        {"new_source": 1, "edit_mode": "insert"},
        ["notebook_path: is required", "new_source: wants text; got int 1", "cell_type: required to insert a cell"],
    ),
    (
        "TeamCreate",
        {"team_name": "a team", "members": [{"prompt": "Go."}, {"name": "main"}, {"name": "a"}, {"name": "A"}]},
        [
            "team_name: wants letters, digits, - and _, at most 64 characters, and not `main`; got 'a team'",
            "members.0.name: is required",
            "members.1.name: wants letters, digits, - and _",
            "members: names must differ, got main, a, A",
        ],
    ),
    ("SendMessage", {"to": "a\nb", "type": "shout"}, ["to: wants one name on one line", "type: wants 'message', "]),
    (
        "TeamDelete",
        {"team_name": 1, "force": "maybe"},
        ["team_name: wants text", "force: wants true or false"],
    ),
]
VALIDATORS_WORDS = re.compile(r"\bshould\b|\bvalid\b|Input|Value error|validation|another value|greater than|or equal")
TEXTS: list[Any] = ["", "x", "x" * 200_000]
NUMBERS: list[Any] = [-1, 1.5, 10**30, float("nan")]
STRANGE: list[Any] = [*TEXTS, *NUMBERS, None, True, [], [[]], [{}], [1] * 200, {}, {"a": [1]}]


def refusal(name: str, arguments: dict[str, Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        BY_NAME[name].validate(arguments)
    return caught.value


@pytest.mark.parametrize(("name", "arguments", "problems"), WRONG, ids=[name for name, _, _ in WRONG])
def test_all_problems_of_a_call_are_reported_at_once(name: str, arguments: dict[str, Any], problems: list[str]) -> None:
    refused = refusal(name, arguments)

    assert refused.code is ErrorCode.INPUT
    lines = refused.message.splitlines()
    if lines[-1].startswith("... and"):
        lines = lines[: len(problems)]
    assert [line[: len(problem)] for line, problem in zip(lines, problems, strict=True)] == problems


def test_the_table_has_every_tool() -> None:
    assert {name for name, _, _ in WRONG} == set(BY_NAME)


@pytest.mark.parametrize("name", BY_NAME)
def test_no_problem_is_reported_in_the_words_of_a_validator(name: str) -> None:
    fields = BY_NAME[name].spec.input_schema["properties"]
    items = {field: wanted.get("items", {}).get("properties", {}) for field, wanted in fields.items()}
    sent = [{field: value} for field in fields for value in STRANGE]
    sent += [{field: [{inner: value}]} for field in fields for inner in items[field] for value in STRANGE]

    messages = [refused.message for one in sent if (refused := _refusal_or_none(name, one)) is not None]

    assert messages
    assert [message for message in messages if VALIDATORS_WORDS.search(message)] == []


def _refusal_or_none(name: str, arguments: dict[str, Any]) -> ToolError | None:
    try:
        BY_NAME[name].validate(arguments)
    except ToolError as refused:
        return refused
    return None
