"""`goat-mcp restart`: an upstream started again in every running goat-mcp of this user that has it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from goat_mcp.cli import exit_codes, flags
from goat_mcp.cli.terminal import say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.cli.waiting import Waiting, waiting_for
from goat_mcp.gateway.status.requests import STARTS_WITHIN_S, RequestKind, UserRequest
from goat_mcp.gateway.status.running_servers import running, who
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.own_servers import no_server, servers_to_change, users_files
from goat_mcp.state.directory import StateDirectory

ANSWERS_WITHIN_S = 5.0
_LOOK_S = 0.05
_SETTLED = frozenset({"ready", "failed", "waiting", "unknown", "refused"})


@click.command()
@click.argument("name")
@flags.as_json
def restart(name: str, as_json: bool) -> int:
    """End and start a server again in every running goat-mcp that has it. Calls that run may finish first.

    Exit status 4 if it does not start in one of them.
    """
    refuse_if_run_by_a_model("start servers again")
    documents = running()
    if not documents:
        servers_to_change([name], users_files(load_settings({})))  # raises for a name that no file has
        click.echo(json.dumps({"name": name, "running": []}) if as_json else "No goat-mcp is running: nothing to do.")
        return exit_codes.OK
    request = UserRequest(StateDirectory.default(), RequestKind.RESTART, name)
    try:
        with waiting_for(f"{name}: starting again") as line:
            answers = _answers(request, [one["pid"] for one in documents], line, name)
    finally:
        request.end()
    having = [one for one in documents if answers.get(one["pid"], {}).get("state") != "unknown"]
    if not having:
        # None has it: what their files of servers say is known to each, and to `list`.
        raise no_server(name, sorted({up["name"] for one in documents for up in one["upstreams"]}))
    results = [{**_who(one), **answers.get(one["pid"], {"state": "no answer"})} for one in having]
    if as_json:
        click.echo(json.dumps({"name": name, "running": results}))
    else:
        for one, result in zip(having, results, strict=True):
            say(f"{who(one)}: {_words(result)}")
    return exit_codes.OK if all(result["state"] == "ready" for result in results) else exit_codes.UNREACHABLE


def _answers(request: UserRequest, pids: Sequence[int], line: Waiting, name: str) -> dict[int, dict[str, Any]]:
    """The last answer of each, once all are settled or the time is over."""
    began_s = time.monotonic()
    while True:
        answers = {one["pid"]: one for one in request.answers()}
        waited_s = time.monotonic() - began_s
        waiting = [pid for pid in pids if answers.get(pid, {}).get("state") not in _SETTLED]
        silent = [pid for pid in waiting if pid not in answers]
        if not waiting or waited_s > STARTS_WITHIN_S or (waiting == silent and waited_s > ANSWERS_WITHIN_S):
            return answers
        line.update(f"{name}: starting again in process {', '.join(map(str, waiting))}")
        time.sleep(_LOOK_S)


def _who(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: document.get(key) for key in ("pid", "transport", "workspace")}


def _words(result: Mapping[str, Any]) -> str:
    state = result["state"]
    if state == "ready":
        return f"started again, {result['tool_count']} tools"
    if state == "no answer":
        return "did not answer; it may be busy, or an older version"
    why = f": {result['reason_code']}: {result['detail']}" if result.get("reason_code") else ""
    return f"{state}{why}"
