"""Our forms as MCP elicitation, for every revision that has it, and what the client answers back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.core.context import WAIT_LIMIT_S, Progress
from goat_mcp.core.elicitation import Answer, Ask, Form, Question, Reply, Value
from goat_mcp.core.heartbeat import beat
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.server.client_channel import ClientChannel
from goat_mcp.server.travelling_state import Opening

_TITLED_CHOICES_SINCE = "2025-11-25"
_REPLIES = {"accept": Reply.ACCEPTED, "decline": Reply.DECLINED, "cancel": Reply.CANCELLED}


def can_elicit(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether the client shows forms. A bare `elicitation: {}` means forms."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def elicitor(channel: ClientChannel, progress: Progress | None, wait_limit_s: float = WAIT_LIMIT_S) -> Ask:
    """The `ctx.ask` of one call.

    With `progress` (the client sent a token) it waits as long as the request lives, with a heartbeat; without, the
    form is withdrawn after `wait_limit_s`, for many clients show nothing (contract: tools.md, AskUserQuestion).
    """

    async def ask(form: Form) -> Answer:
        if not can_elicit(channel.capabilities):
            return Answer(Reply.UNAVAILABLE)
        takes_titles = channel.protocol_version >= _TITLED_CHOICES_SINCE
        request = types.ElicitRequest(
            params=types.ElicitRequestFormParams(
                message=make_visible(form.message), requested_schema=form_schema(form, takes_titles=takes_titles)
            )
        )
        opening = Opening(form.subject, form.record) if form.opens_call else None
        waits = channel.holds_the_request_open
        limit_s = wait_limit_s if waits and progress is None else None
        answer = Answer(Reply.UNANSWERED)
        async with anyio.create_task_group() as group:
            if waits and progress is not None:
                group.start_soon(beat, progress, "waiting for the user's answer")
            with anyio.move_on_after(limit_s):
                try:
                    reply = await channel.ask(request, types.ElicitResult, opening)
                    answer = form_answer(form, reply)
                except MCPError as refused:
                    # A client that is gone has no other way to be asked either.
                    is_gone = refused.error.code == types.CONNECTION_CLOSED
                    answer = Answer(Reply.UNANSWERED if is_gone else Reply.UNAVAILABLE)
            group.cancel_scope.cancel()
        return answer

    return ask


def form_schema(form: Form, *, takes_titles: bool) -> dict[str, Any]:
    """The flat JSON Schema of a form. Before 2025-11-25 there are no lists: several choices are one boolean each."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for question in form.questions:
        if question.multiple and not takes_titles:
            for number, option in enumerate(question.options):
                properties[_box(question, number)] = {
                    "type": "boolean",
                    "title": f"{question.title}: {option.title or option.value}",
                    "default": False,
                }
            continue
        properties[question.name] = _property(question, takes_titles=takes_titles)
        if question.required:
            required.append(question.name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _box(question: Question, number: int) -> str:
    return f"{question.name}_{number + 1}"


def _property(question: Question, *, takes_titles: bool) -> dict[str, Any]:
    about: dict[str, Any] = {"title": make_visible(question.title)}
    if question.description:
        about["description"] = make_visible(question.description)
    if not question.options:
        # Default texts came with titled choices; older revisions may refuse them.
        default = {"default": question.default} if question.default and takes_titles else {}
        return {"type": "string", **about, **default}
    values = [option.value for option in question.options]
    titles = [make_visible(option.title or option.value) for option in question.options]
    if titles == values:
        choices: dict[str, Any] = {"type": "string", "enum": values}
    elif takes_titles:
        titled = [{"const": value, "title": title} for value, title in zip(values, titles, strict=True)]
        choices = {"anyOf": titled} if question.multiple else {"type": "string", "oneOf": titled}
    else:
        choices = {"type": "string", "enum": values, "enumNames": titles}
    if not question.multiple:
        return {**choices, **about}
    return {"type": "array", "items": choices, **({"minItems": 1} if question.required else {}), **about}


def form_answer(form: Form, result: types.ElicitResult) -> Answer:
    """What the person chose; a value that was not on offer is left out, and without a required one nothing was said."""
    if result.action != "accept":
        return Answer(_REPLIES[result.action])
    content: Mapping[str, Any] = result.content or {}
    values: dict[str, Value] = {}
    for question in form.questions:
        value = _value(question, content)
        if value:
            values[question.name] = value
        elif question.required:
            return Answer(Reply.UNANSWERED)
    return Answer(Reply.ACCEPTED, values)


def _value(question: Question, content: Mapping[str, Any]) -> Value | None:
    given = content.get(question.name)
    offered = [option.value for option in question.options]
    if question.multiple:
        boxes = [value for number, value in enumerate(offered) if content.get(_box(question, number)) is True]
        listed = cast("list[Any]", given) if isinstance(given, list) else []
        return tuple(value for value in offered if value in boxes or value in listed) or None
    if not isinstance(given, str) or (offered and given not in offered):
        return None
    return given.strip() or None
