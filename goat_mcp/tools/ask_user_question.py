"""AskUserQuestion: put questions to the person behind the client, or hand them to the model to ask in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from goat_mcp.core.arguments import InputPart, ToolInput, objects_of
from goat_mcp.core.coercion import Problem, shown_value
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Option, Question, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

OTHER = "_other"
MAX_HEADER_CHARS = 12
MAX_OPTIONS_OF_GOA = 6
_GOA_FIELDS = frozenset({"title", "allow_free_text"})
_PREVIEW_CHARS = 2_000


def _answers(answers: dict[str, Any]) -> dict[str, Any]:
    for question, answer in answers.items():
        texts = cast("list[Any]", answer) if isinstance(answer, list) else [answer]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{question[:80]!r} wants text, or a list of texts; got {shown_value(answer)}")
    return answers


class QuestionOption(InputPart):
    label: Annotated[str, Field(min_length=1)]
    description: str
    preview: str = ""


class AskedQuestion(InputPart):
    """One question in either form. What only goa's form has is accepted and not listed."""

    question: Annotated[str, Field(min_length=1)]
    header: Annotated[str, Field(max_length=MAX_HEADER_CHARS)]
    options: Annotated[list[QuestionOption], Field(json_schema_extra={"minItems": 2, "maxItems": 4})]
    multiSelect: bool = False
    title: SkipJsonSchema[str] = ""
    summary: SkipJsonSchema[str] = ""
    required: SkipJsonSchema[bool] = False
    allow_free_text: SkipJsonSchema[bool] = True
    is_goas: SkipJsonSchema[bool] = False

    @classmethod
    def problems_together(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        if not isinstance(given.get("options"), list):
            return
        options = objects_of(given, "options")
        labels = [label for option in options if isinstance(label := option.get("label"), str)]
        if len(set(labels)) < len(labels):
            yield "options", f"labels must differ, got {', '.join(labels)}"
        if given.get("is_goas"):
            if len(options) > MAX_OPTIONS_OF_GOA:
                yield "options", f"wants at most {MAX_OPTIONS_OF_GOA} options, got {len(options)}"
        elif not 2 <= len(options) <= 4:
            yield "options", f"wants 2 to 4 options, got {len(options)}"

    @property
    def label(self) -> str:
        return self.header or self.title or self.question


class AskUserQuestionInput(ToolInput):
    questions: list[AskedQuestion] = Field(min_length=1, max_length=4)
    answers: Annotated[dict[str, Any], AfterValidator(_answers), WithJsonSchema({"type": "object"})] = Field(
        default_factory=dict[str, Any], description="Known ones by question; not asked again"
    )
    annotations: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        """goa's questions: options are texts, and a header is not needed. Source: goa, ask_user_question."""
        asked = arguments.get("questions")
        if isinstance(asked, list):
            arguments["questions"] = [_canonical(question) for question in cast("list[Any]", asked)]
        return ()

    @classmethod
    def problems_together(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        questions = objects_of(given, "questions")
        texts = [text for asked in questions if isinstance(text := asked.get("question"), str)]
        if len(set(texts)) < len(texts):
            yield "", "questions must differ from each other"
        answers: Any = given.get("answers")
        for text in cast("dict[str, Any]", answers) if isinstance(answers, dict) else ():
            if text not in texts:
                yield "answers", f"{text[:80]!r} is none of the questions; use a question's own text"


def _canonical(question: Any) -> Any:
    if not isinstance(question, dict):
        return question
    given = dict(cast("dict[str, Any]", question))
    options = given.get("options")
    texts = isinstance(options, list) and any(isinstance(option, str) for option in cast("list[Any]", options))
    if texts or _GOA_FIELDS & given.keys():
        given["is_goas"] = True
        given.setdefault("header", "")
        listed = cast("list[Any]", options) if isinstance(options, list) else []
        given["options"] = [
            {"label": option, "description": ""} if isinstance(option, str) else option for option in listed
        ]
    return given


@dataclass(frozen=True)
class AskUserQuestion(
    BuiltinTool[AskUserQuestionInput],
    side_effect=SideEffect.READ_ONLY,
    toolset="state",
    title="Ask the user",
    hints=Hints(read_only=True, destructive=False, idempotent=False, open_world=False),
):
    """Ask the user what only they can decide; they may always answer in their own words.

    Where no form can be shown, the questions come back for you to ask.
    """

    examples = (
        ToolExample(
            "One choice",
            {
                "questions": [
                    {
                        "question": "Which database should the service use?",
                        "header": "Database",
                        "options": [
                            {"label": "PostgreSQL", "description": "Runs in the cluster already"},
                            {"label": "SQLite", "description": "No server; one writer at a time"},
                        ],
                    }
                ]
            },
        ),
        ToolExample(
            "Several at once",
            {
                "questions": [
                    {
                        "question": "Which checks should run before a commit?",
                        "header": "Checks",
                        "multiSelect": True,
                        "options": [
                            {"label": "Lint", "description": "Seconds"},
                            {"label": "Tests", "description": "Two minutes"},
                        ],
                    }
                ]
            },
        ),
    )

    async def execute(self, input: AskUserQuestionInput, ctx: ToolContext) -> ToolResult:
        known = {text: _joined(answer) for text, answer in input.answers.items()}
        open_questions = [asked for asked in input.questions if asked.question not in known]
        answers = dict(known)
        for group in _forms(open_questions):
            answer = await ctx.ask(_form(group))
            if answer.reply in (Reply.UNAVAILABLE, Reply.UNANSWERED):
                return _for_the_model([asked for asked in open_questions if asked.question not in answers], answers)
            if answer.reply is not Reply.ACCEPTED:
                if any(asked.required for asked in group):
                    raise ToolError(
                        ErrorCode.CANCELLED,
                        f"the user {answer.reply} a question that needs an answer: {group[0].question[:200]}",
                        "Ask the user in the conversation how to go on.",
                    )
                if group == open_questions:
                    return _result(answers, str(answer.reply))
                continue
            answers |= {
                asked.question: text for number, asked in enumerate(group, 1) if (text := _answer(answer, number))
            }
        complete = all(asked.question in answers for asked in input.questions)
        return _result(answers, "answered" if complete else "incomplete")


def _forms(questions: list[AskedQuestion]) -> list[list[AskedQuestion]]:
    """What is shown together: Claude Code's questions as one form, goa's one form each."""
    together = [asked for asked in questions if not asked.is_goas]
    return [*([together] if together else []), *([asked] for asked in questions if asked.is_goas)]


def _form(questions: list[AskedQuestion]) -> Form:
    fields: list[Question] = []
    for number, asked in enumerate(questions, 1):
        options = tuple(
            Option(option.label, f"{option.label} - {option.description}" if option.description else "")
            for option in asked.options
        )
        closed = bool(options) and not asked.allow_free_text
        needed = asked.required and (closed or not options)
        fields.append(
            Question(f"q{number}", asked.label, asked.question, options, asked.multiSelect and bool(options), needed)
        )
        if options and not closed:
            fields.append(Question(f"q{number}{OTHER}", f"{asked.label}: other", "Your own answer instead"))
    return Form("\n\n".join(_message(asked) for asked in questions), tuple(fields))


def _message(asked: AskedQuestion) -> str:
    previews = [f"{option.label}:\n{option.preview[:_PREVIEW_CHARS]}" for option in asked.options if option.preview]
    return "\n".join(part for part in (asked.title, asked.summary, asked.question, *previews) if part)


def _answer(answer: Answer, number: int) -> str:
    """The person's own words beat a choice; beside several choices they are one more."""
    chosen, other = answer.values.get(f"q{number}", ""), answer.text(f"q{number}{OTHER}")
    if isinstance(chosen, tuple):
        return ", ".join([*chosen, *([other] if other else [])])
    return other or chosen


def _joined(answer: str | list[str]) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)


def _result(answers: Mapping[str, str], status: str) -> ToolResult:
    lines = [f"{question}\n-> {answer}" for question, answer in answers.items()]
    if status not in ("answered", "incomplete"):
        lines.append(f"The user {status} the questions. Go on without, or ask in the conversation.")
    elif status == "incomplete":
        lines.append("The user left the other questions open.")
    return text_result(
        "\n".join(lines), facts={"answers": dict(answers), "status": status}, replace_text=status == "answered"
    )


def _for_the_model(questions: list[AskedQuestion], answers: Mapping[str, str]) -> ToolResult:
    """No form was shown, or nobody answered it: the model asks, and calls again."""
    lines: list[str] = ["No form could be shown. Ask the user in the conversation:"]
    for number, asked in enumerate(questions, 1):
        several = " (several may be chosen)" if asked.multiSelect else ""
        lines.append(f"\n{number}. {asked.question}{several}")
        for letter, option in enumerate(asked.options, 1):
            lines.append(f"   {letter}) {option.label}" + (f" - {option.description}" if option.description else ""))
        if asked.options and asked.allow_free_text:
            lines.append(f"   {len(asked.options) + 1}) something else")
    lines.append('\nThen call AskUserQuestion again with the same questions and "answers": {question: answer}.')
    return text_result("\n".join(lines), facts={"answers": dict(answers), "status": "unasked"})
