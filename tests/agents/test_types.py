"""Agent types from files: what counts, what goes before what, and that a broken file fails alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.agents.agent_types import (
    BUILT_IN,
    MAX_FILE_BYTES,
    AgentType,
    BrokenType,
    TypeFiles,
    agent_type,
    split_file,
)
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace
from tests.agents.scripted import ScriptedModel, ground
from tests.repetitions import examples

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "ws"
    project.mkdir()
    return project


def put(root: Path, name: str, content: str | bytes) -> Path:
    path = root / ".claude" / "agents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parsed(text: str) -> AgentType:
    return agent_type(*split_file(text.encode()), "project")


def test_all_fields_of_a_file_are_read() -> None:
    found = parsed(
        "---\nname: reviewer\ndescription: Reviews code\ntools: Read, Task, mcp__github__*, mcp__jira__get\n"
        "disallowedTools:\n  - FileEdit\nmodel: haiku\npermissionMode: plan\nmaxTurns: 7\nbackground: true\n"
        "isolation: worktree\neffort: low\ncolor: red\n---\n\nYou review.\n\n---\nMore.\n"
    )

    assert found == AgentType(
        name="reviewer",
        description="Reviews code",
        prompt="You review.\n\n---\nMore.",
        tools=frozenset({"Read", "Agent", "mcp__github", "mcp__jira__get"}),
        denied=frozenset({"Edit"}),
        model="haiku",
        effort="low",
        mode="plan",
        max_turns=7,
        background=True,
        isolation="worktree",
        source="project",
    )


@pytest.mark.parametrize("front", ["tools: '*'", "color: red", "model: inherit"], ids=["star", "absent", "inherit"])
def test_what_says_nothing_leaves_the_choice_to_the_starter(front: str) -> None:
    found = parsed(f"---\nname: a\ndescription: b\n{front}\n---\n")

    assert (found.tools, found.model) == (None, "")


def test_a_description_with_an_unquoted_colon_is_taken_as_it_stands() -> None:
    found = parsed('---\r\nname: a\r\ndescription: Use it: "always". <x>user: hi</x>\r\ntools: Read\r\n---\r\nBody\r\n')

    assert found.description == 'Use it: "always". <x>user: hi</x>'
    assert (found.tools, found.prompt) == (frozenset({"Read"}), "Body")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no front matter", "does not begin with front matter"),
        ("---\nname: a\n", "does not begin with front matter"),
        ("---\n- a\n---\n", "not `key: value`"),
        ("---\nname: [a\n---\n", "not YAML, line"),
        ("---\ndescription: b\n---\n", "it has no name"),
        ("---\nname: a\n---\n", "it has no description"),
        ("---\nname: a b\ndescription: b\n---\n", "'a b' is not made of"),
        ("---\nname: {x: y}\ndescription: b\n---\n", "name is not text"),
        ("---\nname: a\ndescription: b\npermissionMode: yolo\n---\n", "permissionMode 'yolo' is none of default"),
        ("---\nname: a\ndescription: b\nmaxTurns: 0\n---\n", "maxTurns '0'"),
        ("---\nname: a\ndescription: b\nmaxTurns: many\n---\n", "maxTurns 'many'"),
        ("---\nname: a\ndescription: b\nbackground: perhaps\n---\n", "neither true nor false"),
        ("---\nname: a\ndescription: b\nisolation: moon\n---\n", "isolation 'moon' is none of worktree, remote"),
        ("---\nname: a\ndescription: b\ntools: Bash(git:*)\n---\n", "'Bash(git:*)' is no tool name"),
        ("---\nname: a\ndescription: b\ndisallowedTools: '*'\n---\n", "'*' is no tool name"),
        ("---\nname: a\ndescription: b\ntools: [[Read]]\n---\n", "no list of names"),
        ("---\nname: a\ndescription: b\ntools: {Read: yes}\n---\n", "tools is not text"),
        (f"---\nname: a\ndescription: b\nmaxTurns: 0x{'f' * 5000}\n---\n", "maxTurns is not text"),
        (f"---\nname: a\ndescription: {'b' * 20_001}\n---\n", "longer than 20000"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, reason: str) -> None:
    with pytest.raises(BrokenType) as broken:
        parsed(text)

    assert reason in str(broken.value)


@pytest.mark.parametrize("tools", ["tools:", "tools: ''", "tools: []"])
def test_an_empty_list_of_tools_does_not_mean_all_of_them(tools: str) -> None:
    with pytest.raises(BrokenType, match="tools is empty"):
        parsed(f"---\nname: a\ndescription: b\n{tools}\n---\nx")


def test_text_that_is_not_utf8_is_no_agent() -> None:
    with pytest.raises(BrokenType, match="UTF-8"):
        split_file(b"---\nname: \xff\n---\n")


async def test_the_projects_type_goes_before_the_users_and_that_before_the_built_in(home: Path, project: Path) -> None:
    put(project, "x.md", "---\nname: shared\ndescription: of the project\n---\n")
    put(home, "y.md", "---\nname: shared\ndescription: of the user\n---\n")
    put(home, "z.md", "---\nname: explorer\ndescription: mine\n---\n")

    known = await TypeFiles(Workspace(project)).read()

    assert known.get("shared").description == "of the project"
    assert (known.get("explorer").description, known.get("explorer").source) == ("mine", "user")
    assert set(known.types) == {"shared", *(type.name for type in BUILT_IN)}


async def test_a_repository_may_narrow_a_built_in_type_and_not_widen_it(home: Path, project: Path) -> None:
    put(project, "explorer.md", "---\nname: explorer\ndescription: Ours\n---\nDo as you like.\n")
    put(project, "planner.md", "---\nname: planner\ndescription: Ours\ntools: Read, Write\n---\nPlan.\n")
    put(home, "mine.md", "---\nname: mine\ndescription: Mine\n---\nAll tools.\n")
    built_in = {type.name: type for type in BUILT_IN}

    known = (await TypeFiles(Workspace(project)).read()).types

    assert (known["explorer"].prompt, known["explorer"].tools) == ("Do as you like.", built_in["explorer"].tools)
    assert (known["planner"].tools, known["planner"].mode) == (frozenset({"Read"}), "plan")
    assert known["mine"].tools is None


async def test_claude_codes_names_of_the_built_in_types_are_understood(project: Path) -> None:
    put(project, "plan.md", "---\nname: Plan\ndescription: my own\n---\n")

    known = await TypeFiles(Workspace(project)).read()

    assert known.get("Explore").name == "explorer"
    assert known.get("Plan").description == "my own"


async def test_an_unknown_type_is_an_error_that_lists_all_and_the_broken_files(home: Path, project: Path) -> None:
    put(project, "fine.md", "---\nname: fine\ndescription: works\n---\n")
    broken = put(home, "bad.md", "---\nname: bad\n---\n")

    known = await TypeFiles(Workspace(project)).read()
    with pytest.raises(ToolError) as unknown:
        known.get("nope")

    assert unknown.value.code is ErrorCode.INPUT
    for name in ("'nope'", "fine", "general-purpose", "explorer", "planner", f"{broken} is broken: it has no desc"):
        assert name in unknown.value.message
    assert "fine (project): works" in unknown.value.suggestion


async def test_a_broken_file_is_not_replaced_by_another_type_of_its_name(home: Path, project: Path) -> None:
    put(project, "explorer.md", "---\nname: explorer\ndescription: strict\npermissionMode: typo\n---\n")
    put(home, "explorer.md", "---\nname: explorer\ndescription: loose\n---\n")

    known = await TypeFiles(Workspace(project)).read()
    with pytest.raises(ToolError) as broken:
        known.get("explorer")

    assert broken.value.code is ErrorCode.CONFIG
    assert known.get("planner").source == "built in"


async def test_the_first_of_two_files_with_one_name_counts(project: Path) -> None:
    put(project, "a.md", "---\nname: twin\ndescription: first\n---\n")
    put(project, "b.md", "---\nname: twin\ndescription: second\n---\n")

    known = await TypeFiles(Workspace(project)).read()

    assert known.get("twin").description == "first"
    assert ["another agent named twin" in file.reason for file in known.broken] == [True]


async def test_files_that_are_no_plain_files_of_the_workspace_are_broken_and_quick(
    tmp_path: Path, home: Path, project: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("---\nname: spy\ndescription: b\n---\nsecret\n")
    put(project, "ok.md", "---\nname: ok\ndescription: b\n---\n")
    (project / ".claude/agents/link.md").symlink_to(outside)
    (home / ".claude/agents").mkdir(parents=True)
    os.mkfifo(project / ".claude/agents/pipe.md")
    os.mkfifo(home / ".claude/agents/pipe2.md")
    put(home, "large.md", b"x" * (MAX_FILE_BYTES + 1))
    put(home, "folder.md/inner", "")

    known = await TypeFiles(Workspace(project)).read()

    assert "ok" in known.types and "spy" not in known.types
    assert {file.name for file in known.broken} == {"link", "pipe", "pipe2", "large", "folder"}


async def test_a_notice_names_broken_files_beside_an_agent_that_works(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        path = put(on.workspace, "bad.md", "---\nname: bad\n---\n")
        result = await on.agent()

    assert f"[agent file {path} is broken: it has no description]" in result.text


async def test_a_types_file_is_read_at_the_call(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        before = await on.agent(subagent_type="fresh")
        put(on.workspace, "fresh.md", "---\nname: fresh\ndescription: new\nmodel: my-model\nmaxTurns: 3\n---\nHi.\n")
        after = await on.agent(subagent_type="fresh")

    assert (before.error_code, after.is_error) == ("E_INPUT", False)


LINES = st.lists(
    st.one_of(
        st.sampled_from(["---", "name: a", "description: b", "tools: &x [*x]", "a: *x", "- 1", "? x", "!!set {a}"]),
        st.text(max_size=40),
        st.builds(
            "{}: {}".format,
            st.sampled_from(["name", "description", "tools", "disallowedTools", "model", "maxTurns", "background"]),
            st.text(max_size=20),
        ),
    ),
    max_size=8,
)


@given(LINES)
@settings(max_examples=examples(300), deadline=None)
def test_whatever_is_in_a_file_it_is_an_agent_or_broken(lines: list[str]) -> None:
    with suppress(BrokenType):
        parsed("\n".join(["---", *lines, "---", "body"]).encode("utf-8", "replace").decode())
