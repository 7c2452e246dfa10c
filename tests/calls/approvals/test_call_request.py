"""The record of a call, its form in the client, and the answer."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from goat_mcp.calls.approvals.call_request import request_for_call
from goat_mcp.calls.approvals.record import Request, Verdict
from goat_mcp.calls.approvals.scopes import choices_for
from goat_mcp.calls.approvals.wording import lines_of
from goat_mcp.calls.permissions.approval import form_of, narrowest_rules, verdict_of
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Reply
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.side_effect import SideEffect
from tests.tool_doubles import spec

SECRET = "hunter2-is-the-password"
CTX = ToolContext(call_id="c", session_key="s", principal="p", client_name="claude-code 2.1\u202e")


def call(tool: str = "Write", **arguments: Any) -> Call:
    path = arguments.get("file_path")
    paths = (path,) if path else ()
    return Call(spec(tool, SideEffect.MUTATING), arguments, paths, (), paths, ("/ws",), "/ws" if tool == "Bash" else "")


def request(asked: Call, diff: str = "", secret: str = SECRET) -> Request:
    redactor = Redactor([secret])
    choices = choices_for(asked, narrowest_rules(asked), redactor=redactor)
    return request_for_call(asked, "mode default", CTX, choices=choices, diff=diff, redactor=redactor)


def accepted(**values: str) -> Answer:
    return Answer(Reply.ACCEPTED, values)


def test_the_form_shows_what_every_surface_shows() -> None:
    asked = request(call(file_path="/ws/src/a.py", content="x\ny"), "--- a\n+++ a\n+x\n+y")

    form = form_of(asked)

    assert form.message.split("\n") == list(lines_of(asked))
    assert lines_of(asked) == (
        "Allow Write? (mode default)",
        "Risk: medium: changes",
        "Client: claude-code 2.1\\u202e",
        "file_path: /ws/src/a.py",
        "content: x",
        "    y",
        "Diff:",
        "--- a",
        "+++ a",
        "+x",
        "+y",
    )
    assert asked.title == "Write: src/a.py"
    assert [(question.name, question.required) for question in form.questions] == [
        ("decision", True),
        ("reason", False),
    ]


def test_the_form_offers_each_scope_and_a_prefix_for_good_too() -> None:
    form = form_of(request(call("Bash", command="git commit -m x")))

    assert [(option.value, option.title) for option in form.questions[0].options] == [
        ("allow_once", "Allow once"),
        ("allow_session", "Allow for this session: Bash(git commit -m x) in /ws"),
        ("allow_always", "Always allow: Bash(git commit -m x) in /ws"),
        ("allow_command", "Allow for this session: commands that begin with `git commit` in /ws"),
        ("always_command", "Always allow: commands that begin with `git commit` in /ws"),
        ("deny", "Deny"),
    ]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("allow_once", Verdict(True, "once")),
        ("allow_session", Verdict(True, "session", ("Bash(git commit -m x)",))),
        ("allow_always", Verdict(True, "always", ("Bash(git commit -m x)",), remember=True)),
        ("allow_command", Verdict(True, "command", ("Bash(git commit *)",))),
        ("always_command", Verdict(True, "command", ("Bash(git commit *)",), remember=True)),
        ("allow_edits", None),
        ("allow_server", None),
        ("bypass", None),
        ("", None),
    ],
)
def test_an_answer_is_one_of_the_scopes_that_were_offered(answer: str, verdict: Verdict | None) -> None:
    asked = request(call("Bash", command="git commit -m x"))

    assert verdict_of(accepted(decision=answer), asked) == verdict


def test_a_denial_carries_the_reason_that_the_model_reads() -> None:
    denied = verdict_of(accepted(decision="deny", reason=" use uv\u202e "), request(call(file_path="/ws/a")))

    assert denied == Verdict(approved=False, reason="use uv\\u202e")


def test_a_reason_counts_for_a_denial_only() -> None:
    assert verdict_of(accepted(decision="allow_once", reason="no"), request(call(file_path="/ws/a"))) == Verdict(True)


@pytest.mark.parametrize(
    "asked",
    [
        call(file_path=f"/ws/{SECRET}", content=f"token={SECRET}", deep={"password": "abcdef", "x": [SECRET]}),
        call("Bash", command=f"git push https://{SECRET}@host"),
        call("Bash", command=f"git commit -m {SECRET}"),
    ],
    ids=["a file", "a command", "a plain command"],
)
def test_a_record_holds_no_secret(asked: Call) -> None:
    whole = json.dumps(asdict(request(asked, f"+{SECRET}")))

    assert SECRET not in whole and "abcdef" not in whole
    assert "Allow " in form_of(request(asked)).message


def test_nothing_in_a_record_hides_or_looks_like_another_line() -> None:
    asked = request(call(**{"a\nRisk: none": "b\nRisk: none", "c": "\x1b[2K"}))

    assert [line for line in lines_of(asked) if line.startswith("Risk")] == ["Risk: medium: changes"]
    assert all(character.isprintable() for line in lines_of(asked) for character in line)


def test_a_change_outside_of_the_workspace_is_a_reason_for_its_risk() -> None:
    assert request(call(file_path="/etc/x")).why == ("changes", "outside the workspace")


def test_a_decision_is_bound_to_tool_arguments_directory_and_principal() -> None:
    asked = call("Bash", command="make")
    same = request(asked)

    others = [
        request(call("Bash", command="make test")),
        request(call("Other", command="make")),
        request(replace(asked, directory="/ws/sub")),
        request_for_call(asked, "x", replace(CTX, principal="q"), redactor=Redactor()),
    ]

    assert request(call("Bash", command="make")).subject == same.subject
    assert same.subject not in {other.subject for other in others}
