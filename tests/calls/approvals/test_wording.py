"""How requests and records read, on every surface."""

from __future__ import annotations

from dataclasses import replace

from goat_mcp.calls.approvals.record import Approval, Choice, Kind, Request, Status, Verdict, clock_time
from goat_mcp.calls.approvals.wording import (
    CONSEQUENCES,
    age,
    choice_title,
    cut_diff,
    headline,
    lines_of,
    outcome,
)

EDIT = Request(
    kind=Kind.CALL,
    subject="1",
    title="Edit: src/a.py",
    principal="p",
    client="claude-code 2.1",
    tool="Edit",
    directory="/ws",
    arguments=(("file_path", "/ws/src/a.py"), ("new_string", "b\nRisk: none")),
    diff="--- a\n+++ a\n-a\n+b",
    risk="medium",
    why=("changes",),
    asked_by="mode default",
    expires_at_s=3_600.0,
)


def waiting(request: Request = EDIT) -> Approval:
    return Approval("ab" * 16, request, 1_000.0, Status.WAITING)


def test_a_request_reads_as_its_question_its_facts_its_arguments_and_its_diff() -> None:
    assert lines_of(EDIT) == (
        "Allow Edit? (mode default)",
        "Risk: medium: changes",
        "Client: claude-code 2.1",
        "Directory: /ws",
        "file_path: /ws/src/a.py",
        "new_string: b",
        "    Risk: none",
        "Diff:",
        "--- a",
        "+++ a",
        "-a",
        "+b",
    )


def test_a_definition_to_be_careful_with_comes_first() -> None:
    careful = replace(EDIT, facts={"careful": ["speaks to the model", "hides text"]})

    assert lines_of(careful)[1] == "Careful: its definition speaks to the model; hides text"


def test_what_is_no_call_is_named_by_its_title() -> None:
    assert headline(replace(EDIT, kind=Kind.LOGIN, title="Log in to github", asked_by="")) == "Log in to github"


def test_a_long_diff_is_cut_with_the_count_of_the_rest() -> None:
    diff = "\n".join(map(str, range(100)))

    assert cut_diff(diff) == (*map(str, range(60)), "[... 40 more lines]")
    assert cut_diff(diff, 99)[-1] == "[... 1 more line]"
    assert cut_diff(diff, 100) == tuple(map(str, range(100)))
    assert lines_of(replace(EDIT, diff=diff), diff_lines=10)[-1] == "[... 90 more lines]"


def test_why_there_is_no_diff_is_one_line() -> None:
    assert lines_of(replace(EDIT, diff="no diff: /A was not read"))[-1] == "No diff: /A was not read"
    assert lines_of(replace(EDIT, diff="a: 2 bytes become 3"))[-1] == "Diff: a: 2 bytes become 3"
    assert lines_of(replace(EDIT, diff=""))[-1] == "    Risk: none"


def test_a_choice_for_good_says_so() -> None:
    choice = Choice("command", "Allow for this session: commands that begin with `make`", may_remember=True)

    assert choice_title(choice) == "Allow for this session: commands that begin with `make`"
    assert choice_title(choice, remember=True) == "Always allow: commands that begin with `make`"


def test_ages_and_ends_are_in_words() -> None:
    decided = replace(waiting(), status=Status.APPROVED, decided_by="page", decided_at_s=2_000.0)
    at = clock_time(2_000.0)

    assert [age(1_000, now_s) for now_s in (1_000, 1_059, 1_060, 8_300, 200_000)] == [
        "0 s ago",
        "59 s ago",
        "1 min ago",
        "2 h ago",
        "2 d ago",
    ]
    assert outcome(waiting(), 3_000) == "expires in 10 min"
    assert outcome(waiting(replace(EDIT, expires_at_s=0)), 3_000) == "waits"
    assert outcome(replace(decided, verdict=Verdict(True, "session"))) == f"approved (session) by page, {at}"
    assert outcome(replace(decided, verdict=Verdict(True, "command", remember=True))) == (
        f"approved (command, remembered) by page, {at}"
    )
    denied = replace(decided, status=Status.DENIED, verdict=Verdict(False, reason="use uv"))
    assert outcome(denied) == f"denied by page, {at}: use uv"
    assert outcome(replace(waiting(), status=Status.EXPIRED)) == "expired"


def test_every_kind_but_a_call_says_what_a_decision_brings_about() -> None:
    assert set(CONSEQUENCES) == set(Kind) - {Kind.CALL}
