"""`goat-mcp call`: run one tool from the shell, through the same pipeline as any client's call."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import AUTH, OK, TOOL_ERROR, UNREACHABLE
from goat_mcp.cli.flags import json_object, key_value_pairs, typed_arguments
from goat_mcp.cli.terminal import escaped, say
from goat_mcp.cli.waiting import Waiting, waiting_for
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Option, Question, Reply, Value
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.processes.typed_lines import typed_line

if TYPE_CHECKING:
    from goat_mcp.gateway.gateway import Gateway

_YES_NO = {"y": "allow", "yes": "allow", "n": "deny", "no": "deny"}
"""What these mean for a choice that has no such words: the first one that begins so."""


_DEFAULTS = {"files": {"read_before_write": "off"}, "approval": {"wait_s": 0}}
"""Each call is a session of its own: there is no earlier one in which the file could have been read. Without a terminal
a script is not kept waiting: it can make the call again once it is approved."""


# Arguments of a tool may look like flags: `goat-mcp call Grep pattern=TODO -i=true`.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("tool")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[KEY=VALUE]...")
@click.option("--input-json", metavar="JSON", help="All arguments as one JSON object.")
@flags.selection
@flags.as_json
def call(tool: str, arguments: Sequence[str], input_json: str | None, as_json: bool, **selection: Any) -> int:
    """Call one tool and print its result.

    TOOL is its name, e.g. Grep or mcp__github__search; arguments are KEY=VALUE, e.g. pattern=TODO -i=true. A background
    task the call starts is waited for.

    Exit status: 0 done, 1 wrong usage, 4 an upstream could not be reached, 5 the tool failed.
    """
    flags.check_is_name(tool)
    settings = flags.settings_from(**selection, defaults=_DEFAULTS)
    flags.say_notices(settings)
    given = json_object(input_json) if input_json is not None else {}
    texts = key_value_pairs(arguments)
    from goat_mcp.gateway.gateway import Gateway

    gateway = Gateway(settings, approval=Approval.ELICIT)
    result = anyio.run(_call, gateway, tool, given, texts)
    if as_json:
        click.echo(json.dumps(result.wire()))
    else:
        _print(result)
    if result.is_error:
        return {"E_UPSTREAM_DOWN": UNREACHABLE, "E_AUTH": AUTH}.get(result.error_code or "", TOOL_ERROR)
    # A task that failed is no error of TaskOutput's, but it is one of this call's.
    return TOOL_ERROR if (result.facts or {}).get("status") in ("failed", "stopped", "orphaned") else OK


async def _call(gateway: Gateway, name: str, given: dict[str, Any], texts: Mapping[str, str]) -> ToolResult:
    line = _Line(name)
    ctx = ToolContext(
        call_id=secrets.token_hex(8),
        client_name="goat-mcp call",
        progress=line.progress,
        wants_progress=True,
        ask=line.ask,
    )
    async with gateway.running():
        with line.shown(f"waiting for the server of {name} to start"):
            # A call waits only some seconds for a server to start; a person at a terminal sees that it goes on.
            await gateway.upstreams.until_started(name)
        try:
            schema = gateway.catalog.resolve(name).spec.input_schema
        except ToolError:
            schema = {}  # the call says what is wrong with the name
        try:
            with line.shown(f"{name} is running"):
                result = await gateway.call(name, {**given, **typed_arguments(texts, schema)}, ctx)
                result = await _with_task(gateway, result, ctx)
        except UpstreamError as refused:
            return error_result(ToolError(ErrorCode.UPSTREAM, f"{refused.message} (JSON-RPC {refused.code})"))
    return result


class _Line:
    """What the call waits for, on stderr of a terminal. It goes away while the person is asked something."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._what = ""
        self._stack = ExitStack()
        self._line: Waiting | None = None

    @contextmanager
    def shown(self, what: str) -> Generator[None]:
        """Show `what`, and then the progress, until the block ends."""
        self._what = what
        try:
            self._show()
            yield
        finally:
            self._hide()

    def _show(self) -> None:
        self._line = self._stack.enter_context(waiting_for(self._what))

    def _hide(self) -> None:
        self._line = None
        self._stack.close()

    async def progress(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """What the tool reports."""
        amount = f"{done:g} of {total:g}" if total else ""
        if not (amount or message):
            return  # a sign of life: the line counts the seconds itself
        self._what = f"{self._name}: {' '.join(part for part in (amount, message) if part)}"
        if self._line is not None:
            self._line.update(self._what)

    async def ask(self, form: Form) -> Answer:
        """See `ask_on_terminal`."""
        self._hide()
        try:
            return await ask_on_terminal(form)
        finally:
            self._show()


async def _with_task(gateway: Gateway, result: ToolResult, ctx: ToolContext) -> ToolResult:
    """Wait for a background task the call started, and answer with the task's own result."""
    task_id = (result.facts or {}).get("task_id")
    if not task_id:
        return result
    # The tool itself: this wait is ours and no call of the user's, who may have left TaskOutput out of the catalog.
    task_output = gateway.builtin("TaskOutput")
    while True:
        fresh = replace(ctx, call_id=secrets.token_hex(8), started_at_s=_now_s())
        try:
            answer = await task_output.execute(task_output.validate({"task_id": task_id, "timeout": 45_000}), fresh)
        except ToolError as lost:
            return error_result(lost)
        if (answer.facts or {}).get("status") != "running":
            return answer


def _now_s() -> float:
    return time.monotonic()


def _print(result: ToolResult) -> None:
    for block in result.content:
        if block.get("type") == "text":
            # An error is for reading; what a tool gives back stays as it is.
            say(block["text"]) if result.is_error else click.echo(escaped(block["text"]))
        else:
            click.echo(f"[{block.get('type')}: {block.get('mimeType', 'no type')}; use --json to get it]")
    if not result.content and result.structured is not None:
        click.echo(json.dumps(result.structured, indent=2))


async def ask_on_terminal(form: Form) -> Answer:
    """Ask on stdin and stderr. Unavailable if stdin is no terminal; the end of input cancels, Ctrl-C ends the call."""
    if not sys.stdin.isatty():
        return Answer(Reply.UNAVAILABLE)
    click.echo(escaped(form.message), err=True)
    values: dict[str, Value] = {}
    try:
        for question in form.questions:
            if question.only_with and question.only_with not in values.values():
                continue
            if (value := await _ask_question(question)) is not None:
                values[question.name] = value
    except EOFError:
        return Answer(Reply.CANCELLED)
    return Answer(Reply.ACCEPTED, values)


async def _ask_question(question: Question) -> Value | None:
    """The answer; None for one left empty. Asks again until a required question has one that is on offer."""
    click.echo(escaped(f"{question.title} {question.description}".rstrip()), err=True)
    for number, option in enumerate(question.options, 1):
        click.echo(escaped(f"  {number}. {option.title or option.value}"), err=True)
    while True:
        click.echo("> ", err=True, nl=False)
        line = await typed_line()
        if not line:
            raise EOFError
        text = line.decode("utf-8", "replace").strip()
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
    word = text.lower()
    begun = [option for option in question.options if word and _begins(option, word)]
    exact = [option for option in begun if word in (option.value.lower(), option.title.lower())]
    if exact or len(begun) == 1:
        return (exact or begun)[0].value
    meant = [option for option in question.options if word in _YES_NO and _begins(option, _YES_NO[word])]
    return meant[0].value if meant else None


def _begins(option: Option, name: str) -> bool:
    return option.value.lower().startswith(name) or option.title.lower().startswith(name)
