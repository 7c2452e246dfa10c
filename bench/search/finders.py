"""The searches that are compared. Each answers all queries over the same definitions."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.search.definitions import Definition
from bench.search.score import Answer
from bench.workbench import FASTMCP_PYTHON, script
from goat_mcp.catalog.search_answer import MOST_FOUND, found_text
from goat_mcp.catalog.search_index import ToolIndex
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec, upstream_tool


@dataclass(frozen=True)
class Run:
    """Answers in the order of the queries. Only ours are timed, which run in here: `build_s` is the CPU time of the
    index, `find_s` how long each search took.
    """

    answers: Sequence[Answer]
    build_s: float = 0.0
    find_s: Sequence[float] = ()


class _NoCalls:
    """Tools are found here, never called."""

    def admit(self, spec: UpstreamSpec) -> None: ...

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        raise AssertionError("nothing is called here")


def specs(definitions: Sequence[Definition]) -> Sequence[UpstreamSpec]:
    """The tools as our catalog has them, with names of the default naming."""
    configs = {
        one.server: UpstreamConfig(name=one.server, server=one.server, target=StdioLaunch("unused"))
        for one in definitions
    }
    return [upstream_tool(configs[one.server], one.entry, _NoCalls()).spec for one in definitions]


def goat(definitions: Sequence[Definition], queries: Sequence[str]) -> Run:
    tools = specs(definitions)
    labels = {spec.rule_name: one.label for spec, one in zip(tools, definitions, strict=True)}
    began_s = time.process_time()
    index = ToolIndex(tools)
    built_s = time.process_time() - began_s
    answers: list[Answer] = []
    took_s: list[float] = []
    for query in queries:
        began_s = time.perf_counter()
        found, _ = index.best(query, lambda _: True, MOST_FOUND)
        took_s.append(time.perf_counter() - began_s)
        answers.append(Answer([labels[spec.rule_name] for spec in found], found_text(found)))
    return Run(answers, built_s, took_s)


def fastmcp(definitions: Sequence[Definition], queries: Sequence[str]) -> Run:
    """`search_tools` of its BM25 search, asked by its own client. Names are those of its proxy: `server_tool`."""
    named = {f"{one.server}_{one.entry['name']}": one for one in definitions}
    given = {"tools": [{**one.entry, "name": name} for name, one in named.items()], "queries": list(queries)}
    done = subprocess.run(
        script("fastmcp_search", python=FASTMCP_PYTHON),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    return Run(
        [Answer([named[name].label for name in found["names"]], found["text"]) for found in json.loads(done.stdout)]
    )
