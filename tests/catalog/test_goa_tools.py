"""goa's own interface: its names, fields and defaults over the tools of this package. Source: goa, "Tool Reference"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.hooks import Hooks
from goat_mcp.calls.hooks.stages import PreToolUse
from goat_mcp.calls.permissions.approval import ALLOW_ONCE
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.state.directory import StateDirectory
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

GOAS_NAMES = ("read", "write", "edit", "search", "bash", "ask_user_question")
MAIN = 'package main\n\nfunc HelloHandler() {\n\tfmt.Println("hello")\n}\n'
SEARCHED = {"pattern": "func.*handler", "glob": "*.go"}


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    return goa_in(tmp_path)


def goa_in(folder: Path, **settings: Any) -> Caller:
    caller = Caller(folder, {"catalog": {"toolsets": ["goa"]}, "sandbox": "off", **settings})
    (caller.project / "src").mkdir(exist_ok=True)
    (caller.project / "src" / "main.go").write_text(MAIN)
    return caller


def names_of(caller: Caller) -> list[str]:
    return [tool.spec.name for tool in caller.gateway.catalog.tools()]


async def text(caller: Caller, tool: str, **arguments: Any) -> str:
    result = await caller.call(tool, **arguments)
    assert not result.is_error, result.text
    return result.text


# --- what is listed


async def test_goas_names_are_listed_with_goas_fields_beside_claude_codes(caller: Caller) -> None:
    fields = {tool.spec.name: list(tool.spec.input_schema["properties"]) for tool in caller.gateway.catalog.tools()}

    assert fields["read"] == ["path", "start_line", "end_line", "max_lines", "max_bytes"]
    assert fields["write"] == ["path", "content", "create_dirs"]
    assert fields["edit"] == ["path", "old_string", "new_string", "replace_all"]
    assert fields["search"][:8] == [
        *("pattern", "path", "glob", "recursive", "case_sensitive", "max_results", "context_lines", "exclude")
    ]
    assert fields["bash"] == ["command", "timeout", "workdir", "env"]
    assert {"Read", "Grep", "Bash", "memento__note"} <= fields.keys()


async def test_goas_defaults_stand_in_its_schemas(caller: Caller) -> None:
    schemas = {tool.spec.name: tool.spec.input_schema["properties"] for tool in caller.gateway.catalog.tools()}

    assert (schemas["read"]["max_lines"]["default"], schemas["read"]["max_bytes"]["default"]) == (500, 50_000)
    assert (schemas["search"]["max_results"]["default"], schemas["search"]["context_lines"]["default"]) == (30, 1)
    assert (schemas["bash"]["timeout"]["default"], schemas["bash"]["timeout"]["maximum"]) == (60, 300)


async def test_a_client_can_have_goas_interface_alone(tmp_path: Path) -> None:
    caller = goa_in(tmp_path, catalog={"toolsets": ["goa"], "allow": ["toolset:goa"]})

    assert names_of(caller)[:6] == list(GOAS_NAMES)
    assert {"Read", "Grep", "Bash"}.isdisjoint(names_of(caller))
    assert "HelloHandler" in await text(caller, "search", **SEARCHED)


async def test_without_its_toolset_goas_names_are_other_names_of_the_tools_as_they_are(tmp_path: Path) -> None:
    caller = goa_in(tmp_path, catalog={})

    assert set(GOAS_NAMES).isdisjoint(names_of(caller))
    assert await text(caller, "search", **SEARCHED) == "No matches found"


async def test_where_a_profile_hides_the_toolset_goas_names_mean_the_tools_as_they_are(tmp_path: Path) -> None:
    caller = goa_in(tmp_path, profiles={"small": {"toolsets": ["core"]}})
    ctx = ToolContext(call_id="c", rights=Rights(profiles=("small",)))

    assert (await caller.gateway.call("search", SEARCHED, ctx)).text == "No matches found"


# --- search


async def test_search_ignores_case_and_shows_a_line_around_each_match(caller: Caller) -> None:
    file = caller.project / "src" / "main.go"

    assert await text(caller, "search", **SEARCHED, max_results=10) == (
        f'{file}-2-\n{file}:3:func HelloHandler() {{\n{file}-4-\tfmt.Println("hello")'
    )
    assert await text(caller, "search", **SEARCHED, case_sensitive=True) == "No matches found"
    assert await text(caller, "search", **SEARCHED, context_lines=0) == f"{file}:3:func HelloHandler() {{"
    assert await text(caller, "Grep", **SEARCHED) == "No matches found"


async def test_search_shows_source_code_before_newer_notes_and_files_with_more_matches_first(caller: Caller) -> None:
    for name, found in (("one.py", "x = 1\n"), ("two.py", "x = 1\nx = 2\n"), ("notes.md", "x = 3\n" * 3)):
        (caller.project / name).write_text(found)

    lines = (await text(caller, "search", pattern="x =", context_lines=0)).splitlines()

    assert [Path(line.partition(":")[0]).name for line in lines] == ["two.py"] * 2 + ["one.py"] + ["notes.md"] * 3


@pytest.mark.parametrize(("asked", "shown"), [({}, 30), ({"max_results": 3}, 3), ({"max_results": 40}, 40)])
async def test_search_counts_matches_and_not_the_lines_around_them(
    caller: Caller, asked: Mapping[str, Any], shown: int
) -> None:
    (caller.project / "many.py").write_text("def f():\n    needle\n    pass\n    pass\n" * 40)

    result = await text(caller, "search", pattern="NEEDLE", **asked)

    lines = result.splitlines()
    assert sum("needle" in line for line in lines) == shown
    assert sum("def f" in line for line in lines) == shown
    last = f"{caller.project}/many.py-{4 * shown - 1}-    pass"
    if shown < 40:
        notice = f"[the first {shown} matches; narrow the search, or raise max_results]"
        assert lines[-2:] == [last, notice]
    else:
        assert lines[-1] == last


async def test_search_stays_in_one_directory_and_leaves_out_what_it_is_asked_to(caller: Caller) -> None:
    (caller.project / "top.go").write_text("func TopHandler() {}\n")

    assert "main.go" not in await text(caller, "search", **SEARCHED, recursive=False)
    assert "main.go" not in await text(caller, "search", **SEARCHED, exclude=["src"])
    assert "top.go" not in await text(caller, "search", **SEARCHED, path="src")


# --- read, write, edit


@pytest.mark.parametrize("path", ["src/main.go", "@src/main.go", "@/src/main.go", "{project}/src/main.go"])
async def test_paths_begin_in_the_project(caller: Caller, path: str) -> None:
    assert await text(caller, "read", path=path.format(project=caller.project), end_line=1) == "1\tpackage main"


async def test_read_shows_500_lines_and_takes_the_offset_of_its_notice(caller: Caller) -> None:
    (caller.project / "long.txt").write_text("".join(f"{number}\n" for number in range(1, 601)))

    first = await text(caller, "read", path="long.txt")
    rest = await text(caller, "read", file_path="long.txt", offset=501)

    assert first.endswith("500\t500\n[PARTIAL: lines 1-500 of 600; continue with offset=501]")
    assert rest.startswith("501\t501\n") and rest.endswith("600\t600")


async def test_a_file_is_written_read_and_edited_by_goas_names(caller: Caller) -> None:
    await text(caller, "write", path="new/hello.go", content="a := 1\n")
    await text(caller, "read", path="new/hello.go")
    await text(caller, "edit", path="new/hello.go", old_string="a := 1  ", new_string="a := 2")

    assert (caller.project / "new" / "hello.go").read_text() == "a := 2\n"
    assert ErrorCode.NOT_FOUND in await caller.problem("write", path="not/a.go", content="", create_dirs=False)


async def test_edit_wants_the_file_read_as_edit_does(caller: Caller) -> None:
    answer = await caller.problem("edit", path="src/main.go", old_string="hello", new_string="world")

    assert answer.endswith("[E_NOT_READ]")


async def test_a_path_cannot_leave_the_workspace(caller: Caller) -> None:
    assert (await caller.problem("read", path="../state/x")).endswith("[E_PATH_OUTSIDE]")


# --- bash


async def test_bashs_timeout_is_in_seconds(caller: Caller) -> None:
    assert await caller.problem("bash", command="sleep 30", timeout=0.2) == (
        "(no output)\ntimed out after 0.2 s and was ended with all it started\n"
        "Send a longer timeout (at most 300 s), or start it with bg_exec.\n[E_TIMEOUT]"
    )
    assert (await caller.problem("bash", command="true", timeout=301)).startswith("timeout: wants at most 300; got")


async def test_bash_shows_the_tail_of_a_long_output_and_names_the_file_of_the_whole(tmp_path: Path) -> None:
    caller = goa_in(tmp_path, output={"max_chars": 1000})
    command = "seq 10000"

    tail = await text(caller, "bash", command=command)
    both = await text(caller, "Bash", command=command)

    assert tail.startswith("[... ") and "the whole is in " in tail.splitlines()[0]
    assert tail.endswith("9999\n10000") and "\n1\n" not in tail
    assert both.startswith("1\n2\n")


async def test_bash_takes_a_directory_of_the_project_and_variables(caller: Caller) -> None:
    assert await text(caller, "bash", command='echo "$PWD $A"', workdir="src", env={"A": 1}) == (
        f"{caller.project}/src 1"
    )


# --- questions


async def test_goas_questions_are_asked_also_if_they_have_nothing_but_their_text(tmp_path: Path) -> None:
    forms: list[Form] = []

    async def ask(form: Form) -> Answer:
        forms.append(form)
        return Answer(Reply.ACCEPTED, {form.questions[0].name: "main"})

    caller = goa_in(tmp_path)
    caller.ask = ask

    await text(caller, "ask_user_question", questions=[{"question": "Which branch?"}])

    assert len(forms) == 1


# --- the same pipeline


@pytest.mark.parametrize("rule", ["Bash", "bash", "Bash(rm *)"])
async def test_a_rule_that_denies_bash_denies_it_by_goas_name(tmp_path: Path, rule: str) -> None:
    caller = goa_in(tmp_path, permissions={"deny": [rule]})

    assert (await caller.problem("bash", command="rm -r src")).endswith("[E_PERMISSION]")


async def test_a_rule_about_files_holds_for_goas_relative_paths(tmp_path: Path) -> None:
    caller = goa_in(tmp_path, permissions={"deny": ["Read(src/**)"]})

    assert (await caller.problem("read", path="src/main.go")).endswith("[E_PERMISSION]")
    assert await text(caller, "search", **SEARCHED) == "No matches found"


async def test_a_tool_that_the_catalog_denies_is_denied_by_goas_name(tmp_path: Path) -> None:
    caller = goa_in(tmp_path, catalog={"toolsets": ["goa"], "deny": ["Bash"]})

    assert {"Bash", "bash"}.isdisjoint(names_of(caller))
    assert (await caller.problem("bash", command="true")).endswith("[E_TOOL_NOT_IN_CATALOG]")


async def test_an_allowed_command_is_asked_about_only_if_no_rule_allows_it(tmp_path: Path) -> None:
    asked: list[Form] = []

    async def ask(form: Form) -> Answer:
        asked.append(form)
        return Answer(Reply.ACCEPTED, {form.questions[0].name: ALLOW_ONCE})

    alone = {"toolsets": ["goa"], "allow": ["toolset:goa"]}
    caller = goa_in(tmp_path, catalog=alone, approval="elicit", permissions={"allow": ["Bash(echo *)"]})
    caller.ask = ask

    assert await text(caller, "bash", command="echo hi") == "hi"
    assert asked == []
    assert await text(caller, "bash", command="touch made") == "(no output)"
    assert len(asked) == 1


async def test_hooks_see_the_tool_itself_and_may_rewrite_its_input(tmp_path: Path) -> None:
    seen: list[tuple[str, Mapping[str, Any]]] = []

    async def shorter(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        seen.append((spec.name, arguments))
        return PreToolUse(arguments={**arguments, "command": "echo hooked"})

    caller = goa_in(tmp_path)
    caller.gateway = Gateway(
        caller.gateway.settings,
        approval=Approval.HOST,
        state=StateDirectory(tmp_path / "other"),
        hooks=Hooks(before=(shorter,)),
    )

    assert await text(caller, "bash", command="echo asked", timeout=2) == "hooked"
    assert seen[0] == ("Bash", {"command": "echo asked", "timeout": 2000, "is_goas": True})


async def test_the_record_has_the_tool_itself(caller: Caller) -> None:
    await text(caller, "search", **SEARCHED)

    (file,) = (caller.folder / "state").rglob("audit*.jsonl")
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert {entry["tool"] for entry in entries if "tool" in entry} == {"Grep"}


async def test_a_bad_field_is_named_as_goa_names_it(caller: Caller) -> None:
    answer = await caller.problem("search", pattern="x", max_result=3, context_lines="many")

    assert "max_result: unknown field; did you mean max_results?" in answer
    assert "context_lines: wants a whole number" in answer
    assert answer.endswith("[E_INPUT]")
