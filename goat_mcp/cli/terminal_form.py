"""A form put to the person at the terminal, one question a line; a number, or a word's beginning, answers a choice."""

from __future__ import annotations

import sys

import click

from goat_mcp.core.elicitation import Answer, Form, Question, Reply, Value


async def ask_on_terminal(form: Form) -> Answer:
    """Ask on stdin and stderr. Unavailable where stdin is not a terminal; end of input cancels."""
    if not sys.stdin.isatty():
        return Answer(Reply.UNAVAILABLE)
    import anyio.to_thread

    return await anyio.to_thread.run_sync(_ask, form, abandon_on_cancel=True)


def _ask(form: Form) -> Answer:
    from goat_mcp.cli.terminal import escaped

    click.echo(escaped(form.message), err=True)
    values: dict[str, Value] = {}
    try:
        for question in form.questions:
            if (value := _ask_one(question)) is not None:
                values[question.name] = value
    except (EOFError, KeyboardInterrupt, click.Abort):
        return Answer(Reply.CANCELLED)
    return Answer(Reply.ACCEPTED, values)


def _ask_one(question: Question) -> Value | None:
    """The answer; None for one left empty. Asks again until a required question has one that is on offer."""
    from goat_mcp.cli.terminal import escaped

    click.echo(escaped(f"{question.title} {question.description}".rstrip()), err=True)
    for number, option in enumerate(question.options, 1):
        click.echo(escaped(f"  {number}. {option.title or option.value}"), err=True)
    while True:
        click.echo("> ", err=True, nl=False)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        text = line.strip()
        if not text and not question.required:
            return None
        chosen = tuple(_choice(part.strip(), question) for part in (text.split(",") if question.multiple else [text]))
        if text and None not in chosen:
            answers = tuple(part for part in chosen if part is not None)
            return answers if question.multiple else answers[0]
        click.echo("Please answer with a number, or with the beginning of one of the above.", err=True)


def _choice(text: str, question: Question) -> str | None:
    if not question.options:
        return text
    if text.isdecimal() and 1 <= int(text) <= len(question.options):
        return question.options[int(text) - 1].value
    named = [
        option.value for option in question.options if text.lower() in (option.value.lower(), option.title.lower())
    ]
    return named[0] if named else None
