"""AskUserQuestion: forms, both spellings of a question, and what happens where nobody can be asked."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply, Value
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.tools.ask_user_question import AskUserQuestion

pytestmark = pytest.mark.anyio

TOOL = AskUserQuestion()
DB: dict[str, Any] = {
    "question": "Which db?",
    "header": "DB",
    "options": [{"label": "pg", "description": "x"}, {"label": "sqlite", "description": "y"}],
    "multiSelect": False,
}
EXTRAS: dict[str, Any] = {
    "question": "Which extras?",
    "header": "Extras",
    "options": [{"label": "logs", "description": ""}, {"label": "metrics", "description": ""}],
    "multiSelect": True,
}
GOA: dict[str, Any] = {"title": "Target branch", "summary": "Two are active", "question": "Which branch?"}


class Person:
    """Answers forms in turn and keeps them."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.forms: list[Form] = []

    async def __call__(self, form: Form) -> Answer:
        self.forms.append(form)
        return self.answers.pop(0)


def accepted(**values: Value) -> Answer:
    return Answer(Reply.ACCEPTED, values)


async def ask(person: Person | None, **arguments: Any) -> ToolResult:
    ctx = ToolContext(call_id="c") if person is None else ToolContext(call_id="c", ask=person)
    return await TOOL.execute(TOOL.validate(arguments), ctx)


async def test_ask_002_without_elicitation_the_questions_come_back_numbered_for_the_model_to_ask() -> None:
    result = await ask(None, questions=[DB])

    assert not result.is_error
    assert result.text == (
        "No form could be shown. Ask the user in the conversation:\n\n1. Which db?\n   1) pg - x\n   2) sqlite - y\n"
        '   3) something else\n\nThen call AskUserQuestion again with the same questions and "answers": '
        "{question: answer}."
    )
    assert result.facts == {"answers": {}, "status": "unasked"}


async def test_ask_002_with_elicitation_the_answers_are_a_map_from_question_to_label() -> None:
    person = Person(accepted(q1="pg", q2=("logs", "metrics")))

    result = await ask(person, questions=[DB, EXTRAS])

    assert result.facts == {"answers": {"Which db?": "pg", "Which extras?": "logs, metrics"}, "status": "answered"}
    assert result.facts_replace_text
    (form,) = person.forms
    assert [(field.name, field.multiple, len(field.options)) for field in form.questions] == [
        ("q1", False, 2),
        ("q1_other", False, 0),
        ("q2", True, 2),
        ("q2_other", False, 0),
    ]
    assert "Which db?" in form.message and form.questions[0].options[0].title == "pg - x"


async def test_the_persons_own_words_beat_a_choice_and_join_several() -> None:
    person = Person(accepted(q1="pg", q1_other="MariaDB", q2=("logs",), q2_other="traces"))

    result = await ask(person, questions=[DB, EXTRAS])

    assert result.facts is not None
    assert result.facts["answers"] == {"Which db?": "MariaDB", "Which extras?": "logs, traces"}


async def test_what_is_answered_already_is_not_asked() -> None:
    person = Person(accepted(q1=("logs",)))

    result = await ask(person, questions=[DB, EXTRAS], answers={"Which db?": "pg"})

    assert [field.name for field in person.forms[0].questions] == ["q1", "q1_other"]
    assert result.facts is not None
    assert result.facts["answers"] == {"Which db?": "pg", "Which extras?": "logs"}

    assert (await ask(None, questions=[DB], answers={"Which db?": "pg"})).facts == {
        "answers": {"Which db?": "pg"},
        "status": "answered",
    }


@pytest.mark.parametrize("reply", [Reply.DECLINED, Reply.CANCELLED])
async def test_a_refusal_is_an_answer(reply: Reply) -> None:
    result = await ask(Person(Answer(reply)), questions=[DB])

    assert (result.is_error, result.facts) == (False, {"answers": {}, "status": str(reply)})
    assert str(reply) in result.text


async def test_a_form_that_nobody_answers_becomes_questions_for_the_model() -> None:
    result = await ask(Person(Answer(Reply.UNANSWERED)), questions=[DB])

    assert result.facts == {"answers": {}, "status": "unasked"}


async def test_a_question_left_open_is_said() -> None:
    result = await ask(Person(accepted(q1="pg")), questions=[DB, EXTRAS])

    assert result.facts == {"answers": {"Which db?": "pg"}, "status": "incomplete"}
    assert "left the other questions open" in result.text


async def test_goas_questions_are_asked_one_form_each() -> None:
    person = Person(accepted(q1="main"), accepted(q1="because"))

    result = await ask(
        person,
        questions=[
            GOA | {"options": ["main", "release-2.x"], "allow_free_text": False},
            {"title": "T", "question": "Why?"},
        ],
    )

    assert [form.message for form in person.forms] == ["Target branch\nTwo are active\nWhich branch?", "T\nWhy?"]
    assert [[field.name for field in form.questions] for form in person.forms] == [["q1"], ["q1"]]
    assert result.facts == {"answers": {"Which branch?": "main", "Why?": "because"}, "status": "answered"}


async def test_cancelling_is_an_error_only_where_an_answer_is_required() -> None:
    with pytest.raises(ToolError) as caught:
        await ask(Person(Answer(Reply.CANCELLED)), questions=[GOA | {"required": True}])

    assert caught.value.code is ErrorCode.CANCELLED
    assert (await ask(Person(Answer(Reply.CANCELLED)), questions=[GOA])).is_error is False


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"questions": []}, "questions: wants"),
        ({"questions": [DB] * 5}, "questions: wants"),
        ({"questions": [DB | {"header": "thirteen char"}]}, "questions.0.header"),
        ({"questions": [DB | {"options": DB["options"][:1]}]}, "wants 2 to 4 options, got 1"),
        ({"questions": [DB | {"options": [DB["options"][0]] * 2}]}, "labels must differ"),
        ({"questions": [{"question": "Which db?", "options": DB["options"]}]}, "questions.0.header: is required"),
        ({"questions": [DB, DB]}, "questions must differ"),
        ({"questions": [DB], "answers": {"Which?": "pg"}}, "'Which?' is none of the questions"),
        ({"questions": [GOA | {"options": list("abcdefg")}]}, "at most 6 options"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_its_place(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolError) as caught:
        TOOL.validate(arguments)

    assert caught.value.code is ErrorCode.INPUT
    assert problem in caught.value.message
