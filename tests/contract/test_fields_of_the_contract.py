"""Section 2 of the tools' contract as a literal table: each field's name, type, bounds and default, and its aliases.

`*` required; s string, i integer, b boolean, a array, o object. Claude Code's names, then goa's and ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from goat_mcp.core.tool import BuiltinTool
from tests.contract.test_every_tool import TOOLS

BY_NAME: dict[str, Any] = {tool.spec.name: tool for tool in TOOLS}

FIELDS = {
    "Bash": "command* s; timeout i>0; description s; run_in_background b=False; dangerouslyDisableSandbox b=False; "
    "workdir s; env o",
    "Read": "file_path* s; offset i; limit i>0; pages s; allow_large b=False",
    "Write": "file_path* s; content* s",
    "Edit": "file_path* s; old_string s; new_string s; replace_all b=False; "
    "edits a of {old_string* s; new_string* s; replace_all b=False}",
    "Glob": "pattern* s; path s; include_ignored b=False; limit i>=1<=1000=100",
    "Grep": "pattern* s; path s; glob s; output_mode files_with_matches|content|count='files_with_matches'; "
    "-A i>=0; -B i>=0; -C i>=0; context i>=0; -n b=True; -i b=False; -o b=False; type s; head_limit i>=0=250; "
    "offset i>=0=0; multiline b=False; include_ignored b=False; rank mtime|priority='mtime'",
    "TaskOutput": "task_id* s; block b=True; timeout i>=0<=600000=30000",
    "TaskStop": "task_id s; shell_id s",
    "TodoWrite": "todos* a<=100 of {content* s; status* pending|in_progress|completed; activeForm* s}",
    "Config": "setting* s; value s|b|number",
    "ExitPlanMode": "plan s; allowedPrompts a of {tool* s; prompt* s<=500}",
    "AskUserQuestion": "questions* a>=1<=4 of {question* s>=1; header* s<=12; "
    "options* a>=2<=4 of {label* s>=1; description* s; preview s=''}; multiSelect b=False}; "
    "answers o; annotations o; metadata o",
    "WebFetch": "url* s; prompt s; offset i>=0=0; raw b=False",
    "WebSearch": "query* s>=2; allowed_domains a of s; blocked_domains a of s",
    "Agent": "description* s; prompt* s>=1; subagent_type s; model sonnet|opus|haiku|fable; "
    "effort low|medium|high|xhigh|max; run_in_background b=False; name ^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$; "
    "isolation worktree|remote; resume s; max_turns i>=1; mode default|acceptEdits|plan|dontAsk|bypassPermissions; "
    "team_name s",
    "ListMcpResources": "server s",
    "ReadMcpResource": "server* s; uri* s",
    "NotebookEdit": "notebook_path* s; new_source* s; cell_id s; cell_type code|markdown; "
    "edit_mode replace|insert|delete='replace'",
    "TeamCreate": "team_name* s; description s=''; "
    "members a<=10 of {name* s; subagent_type s=''; prompt s=''; model s=''}",
    "SendMessage": "to* s>=1<=300; message s=''; summary s=''; "
    "type message|broadcast|shutdown_request|shutdown_response='message'; notify_when_idle b=False",
    "TeamDelete": "team_name s=''; force b=False",
}
LETTERS = {"string": "s", "integer": "i", "boolean": "b", "array": "a", "object": "o"}
BOUNDS = {
    "exclusiveMinimum": ">",
    "minimum": ">=",
    "minLength": ">=",
    "minItems": ">=",
    "maximum": "<=",
    "maxLength": "<=",
    "maxItems": "<=",
}


def notation(schema: Mapping[str, Any]) -> str:
    """An object's fields in the words of the table."""
    required = schema.get("required", [])
    return "; ".join(
        f"{name}{'*' if name in required else ''} {_kind(field)}" for name, field in schema["properties"].items()
    )


def _kind(field: Mapping[str, Any]) -> str:
    kinds = cast("list[str]", field["type"] if isinstance(field["type"], list) else [field["type"]])
    kind = "|".join(LETTERS.get(each, each) for each in kinds)
    kind = "|".join(field.get("enum", [])) or field.get("pattern") or kind
    kind += "".join(f"{sign}{field[bound]}" for bound, sign in BOUNDS.items() if bound in field)
    if "items" in field:
        items = field["items"]
        kind += f" of {{{notation(items)}}}" if "properties" in items else f" of {_kind(items)}"
    return kind + (f"={field['default']!r}" if "default" in field else "")


@pytest.mark.parametrize("name", FIELDS)
def test_a_tool_lists_the_fields_of_its_contract_and_no_others(name: str) -> None:
    assert notation(BY_NAME[name].spec.input_schema) == FIELDS[name]


@pytest.mark.parametrize("name", FIELDS)
def test_fields_nobody_knows_are_refused_but_where_hosts_add_their_own(name: str) -> None:
    takes_more = BY_NAME[name].spec.input_schema.get("additionalProperties") is not False

    assert takes_more is (name == "ExitPlanMode")


# Aliases that are accepted and not listed: what comes, and what it means.
ALIASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Read", {"path": "/a", "start_line": 3, "end_line": 5}, {"file_path": "/a", "offset": 3, "limit": 3}),
    ("Read", {"filePath": "/a", "max_lines": 5}, {"file_path": "/a", "limit": 5}),
    ("Write", {"path": "/a", "content": ""}, {"file_path": "/a", "content": ""}),
    (
        "Edit",
        {"path": "/a", "oldString": "a", "newString": "b", "replaceAll": "true"},
        {"file_path": "/a", "old_string": "a", "new_string": "b", "replace_all": True},
    ),
    (
        "Glob",
        {"pattern": "*", "directory": "/a", "no_ignore": True},
        {"pattern": "*", "path": "/a", "include_ignored": True},
    ),
    (
        "Grep",
        {"pattern": "x", "before_context": 1, "after_context": 2, "context_lines": 3, "max_results": 4},
        {"pattern": "x", "-B": 1, "-A": 2, "context": 3, "head_limit": 4},
    ),
    ("Grep", {"pattern": "x", "case_sensitive": False, "recursive": True}, {"pattern": "x", "-i": True}),
    (
        "Grep",
        {"pattern": "x", "case_insensitive": True, "exclude": "*.js"},
        {"pattern": "x", "-i": True, "glob": "!*.js"},
    ),
    ("Bash", {"cmd": "x", "cwd": "/a", "timeout_ms": 5}, {"command": "x", "workdir": "/a", "timeout": 5}),
    ("Bash", {"command": "x", "timeout_s": 5}, {"command": "x", "timeout": 5000}),
    ("TaskOutput", {"shell_id": "t"}, {"task_id": "t"}),
    ("TaskOutput", {"bash_id": "t"}, {"task_id": "t"}),
    ("Config", {"key": "output.max_chars"}, {"setting": "output.max_chars"}),
    (
        "NotebookEdit",
        {"file_path": "/a", "new_source": "", "cell_id": "c"},
        {"notebook_path": "/a", "new_source": "", "cell_id": "c"},
    ),
    ("SendMessage", {"recipient": "main", "content": "hi"}, {"to": "main", "message": "hi"}),
]


@pytest.mark.parametrize(("name", "given", "meant"), ALIASES)
def test_an_alias_is_understood_as_the_field_it_stands_for(
    name: str, given: dict[str, Any], meant: dict[str, Any]
) -> None:
    tool: BuiltinTool[Any] = BY_NAME[name]

    assert tool.validate(given) == tool.validate(meant)
