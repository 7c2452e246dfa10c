"""How a model reaches tools: listed directly, by a search of the gateway, by a script, or by a search of its host.

Each way drives a real gateway. What a model would write is put together here; what it reads is what the gateway says.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from bench.tasks.ledger import Ledger, tokens
from bench.tasks.services import Services


class TaskFailed(Exception):
    """The model cannot go on; the message says why."""


@dataclass(frozen=True)
class Names:
    """What a gateway calls things. `prefixed`: tools carry the name of their server."""

    prefixed: bool
    search: str = "search_tools"
    describe: str = "describe_tool"
    call: str = "call_tool"
    run: str = "run_script"
    script_argument: str = "script"

    def tool(self, services: Services, name: str) -> str:
        return f"{services.server_of[name]}_{name}" if self.prefixed else name


@dataclass(frozen=True)
class Habits:
    """How a model works. `thought` is written before each turn."""

    name: str
    thought: str = ""
    is_parallel: bool = False
    describes: bool = False
    looks_again: bool = False
    errs_first: bool = False


@dataclass
class Call:
    name: str
    arguments: dict[str, Any]


class Way(Protocol):
    async def prepare(self, needed: Sequence[str]) -> None:
        """Find the tools that the task needs."""
        ...

    async def call(self, calls: Sequence[Call]) -> list[Any]:
        """Call real tools, in one turn. Returns what they answer; raises `TaskFailed`."""
        ...


@dataclass
class Conversation:
    """One task through one gateway."""

    client: Client
    services: Services
    names: Names
    habits: Habits
    ledger: Ledger

    async def read(self, call: Call) -> str:
        """What the gateway answers to one call, as a model reads it."""
        return (await self._answer(call))[0]

    async def _answer(self, call: Call) -> tuple[str, bool]:
        try:
            result = await self.client.call_tool(call.name, call.arguments)
        except MCPError as refused:
            return refused.error.message, True
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        return text, result.is_error

    async def turn(self, *calls: Call) -> list[tuple[str, bool]]:
        """The model calls what is listed. Returns the texts, and whether each is an error."""
        written = self.habits.thought + "".join(
            json.dumps({"name": call.name, "input": call.arguments}) for call in calls
        )
        answers = [await self._answer(call) for call in calls]
        self.ledger.turn(written, *(text for text, _ in answers))
        return answers

    async def real(self, calls: Sequence[Call]) -> list[Any]:
        """As `turn`, for tools of the services: parsed answers."""
        answers = await self.turn(*calls)
        for text, is_error in answers:
            if is_error:
                raise TaskFailed(text)
        return [json.loads(text) for text, _ in answers]

    async def found(self, needed: Sequence[str]) -> None:
        """Search for tools until each is in an answer: with the words of the task, then with others."""
        missing = [*needed]
        for attempt in range(2):
            groups = [missing] if self.habits.is_parallel else [[one] for one in missing]
            for group in groups:
                if not group:
                    continue
                asked = [Call(self.names.search, {"query": self.services.queries[one][attempt]}) for one in group]
                answers = await self.turn(*asked)
                for one, (text, _) in zip(group, answers, strict=True):
                    if self.names.tool(self.services, one) in text:
                        missing = [other for other in missing if other != one]
            if not missing:
                return
        raise TaskFailed(f"search did not find {', '.join(missing)}")


@dataclass
class Direct:
    """Every tool is listed."""

    talk: Conversation

    async def prepare(self, needed: Sequence[str]) -> None:
        return

    async def call(self, calls: Sequence[Call]) -> list[Any]:
        names, services = self.talk.names, self.talk.services
        return await self.talk.real([Call(names.tool(services, one.name), one.arguments) for one in calls])


@dataclass
class Searched:
    """The gateway lists a search, a call, and perhaps some of the tools: these need no search."""

    talk: Conversation
    listed: frozenset[str]

    async def prepare(self, needed: Sequence[str]) -> None:
        names, services = self.talk.names, self.talk.services
        hidden = [one for one in needed if names.tool(services, one) not in self.listed]
        await self.talk.found(hidden)
        if self.talk.habits.describes and names.describe:
            for one in hidden:
                await self.talk.turn(Call(names.describe, {"name": names.tool(services, one)}))

    async def call(self, calls: Sequence[Call]) -> list[Any]:
        return await self.talk.real([self._as_sent(one) for one in calls])

    def _as_sent(self, one: Call) -> Call:
        names = self.talk.names
        name = names.tool(self.talk.services, one.name)
        if name in self.listed:
            return Call(name, one.arguments)
        return Call(names.call, {"name": name, "arguments": one.arguments})


@dataclass
class HostSearched:
    """The host holds back the definitions, and puts five into the conversation for each search. Taken as perfect: the
    tool that is wanted is always among them.
    """

    talk: Conversation
    definitions: Mapping[str, str]

    async def prepare(self, needed: Sequence[str]) -> None:
        listed = list(self.definitions)
        for one in needed:
            at = listed.index(self.talk.names.tool(self.talk.services, one))
            five = [self.definitions[listed[(at + step) % len(listed)]] for step in range(5)]
            query = json.dumps({"name": "tool_search", "input": {"query": self.talk.services.queries[one][0]}})
            self.talk.ledger.turn(self.talk.habits.thought + query, *five)

    async def call(self, calls: Sequence[Call]) -> list[Any]:
        return await Direct(self.talk).call(calls)


READING = ("search", "list", "read", "query")
"""How the names of tools begin that only read."""
HOST_SEARCH_TOKENS = 160
"""A host's own tool for searching: its definition."""


class _Renamed(ast.NodeTransformer):
    """A task's script in the words of a gateway's code mode."""

    def __init__(self, talk: Conversation) -> None:
        self._talk = talk

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        services = self._talk.services
        if not isinstance(node.func, ast.Name) or node.func.id not in services.server_of:
            return node
        name = self._talk.names.tool(services, node.func.id)
        if not self._talk.names.prefixed:
            node.func.id = name
            return ast.Await(node)
        keys: list[ast.expr | None] = [ast.Constant(word.arg) for word in node.keywords]
        values = ast.Dict(keys, [word.value for word in node.keywords])
        return ast.Await(ast.Call(ast.Name("call_tool", ast.Load()), [ast.Constant(name), values], []))


@dataclass
class Scripted:
    """The gateway runs a script. A model writes the whole task as one."""

    talk: Conversation

    async def run(self, script: str, needed: Sequence[str]) -> str:
        """Returns what the script answered; raises `TaskFailed`."""
        await self.talk.found(needed)
        names = self.talk.names
        if self.talk.habits.describes:
            for one in needed:
                name = names.tool(self.talk.services, one)
                key = {"tools": [name]} if names.prefixed else {"name": name}
                await self.talk.turn(Call(names.describe, key))
        if self.talk.habits.errs_first:
            await self._once(_without_last_argument(script))
        text, is_error = await self._once(script)
        if is_error:
            raise TaskFailed(text)
        if self.talk.habits.looks_again and (first := self._first_look(script)):
            await self._once(first)
        return text

    def _first_look(self, script: str) -> str:
        """The first statement, if it only reads; empty otherwise."""
        first = ast.parse(script).body[0]
        names = [
            node.func.id for node in ast.walk(first) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        called = [name for name in names if name in self.talk.services.server_of]
        only_reads = isinstance(first, ast.Assign) and called and all(name.startswith(READING) for name in called)
        return ast.unparse(first) if only_reads else ""

    async def _once(self, script: str) -> tuple[str, bool]:
        names = self.talk.names
        tree = ast.fix_missing_locations(_Renamed(self.talk).visit(ast.parse(script)))
        code = ast.unparse(tree)
        if "answer" in script:
            code += "\nreturn answer" if names.prefixed else "\nanswer"
        ((text, is_error),) = await self.talk.turn(Call(names.run, {names.script_argument: code}))
        return text, is_error


def _without_last_argument(script: str) -> str:
    """The mistake of a model that is wrong at first: an argument is missing in its first call."""
    tree = ast.parse(script)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.keywords:
            node.keywords[-1].arg = "unknown"
            break
    return ast.unparse(tree)


def definition_tokens(listed: Sequence[Mapping[str, Any]]) -> int:
    """What a model's provider bills for them: name, description and input schema."""
    return sum(tokens(definition_text(one)) for one in listed)


def definition_text(tool: Mapping[str, Any]) -> str:
    shown = {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
