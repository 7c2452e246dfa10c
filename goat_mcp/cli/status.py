"""`goat-mcp status`: what runs, and how each MCP server behind it is doing."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.server_records import failure_line, is_news, last_runs, span, unknown_server
from goat_mcp.cli.terminal import console, escaped, say, wrapped_table
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:  # loaded when there is something to show
    from goat_mcp.gateway.status.last_runs import LastRun

_TROUBLE = frozenset({"failed", "refused", "waiting"})


@click.command
@click.argument("server", required=False)
@flags.selection
@flags.as_json
def status(server: str | None, as_json: bool, **selection: Any) -> None:
    """Show every goat-mcp of yours that runs, and the state of each upstream: why it is down, what is rejected.

    With SERVER all that is known of this one upstream. If none runs, the configured upstreams are shown with what is
    known of them from the last run, its last failure too. Nothing is started and nothing is called.
    """
    from goat_mcp.gateway.status.gateway_status import with_ages
    from goat_mcp.gateway.status.process_files import ProcessFiles
    from goat_mcp.gateway.status.system_features import as_document, summary, system_features

    now_s = time.time()
    earlier = last_runs()
    running = [with_ages(document, now_s) for document in ProcessFiles(StateDirectory.default()).running()]
    configured = None if running else _configured(selection)
    if server is not None:
        running, configured = _only(server, running, configured, selection)
    if as_json:
        shown = [_with_last_runs(document, earlier) for document in (*running, *([configured] if configured else []))]
        document = shown.pop() if configured else None
        system = as_document(system_features())
        click.echo(json.dumps({"running": shown, "configured": document, "system": system}))
        return
    show = _print if server is None else _print_one
    for document in running:
        show(document, _who(document), earlier)
    if configured is not None:
        show(configured, "No goat-mcp is running. Configured, with what is known from the last run:", earlier)
    if server is None:
        say(summary(system_features()))


def _only(
    server: str, running: list[dict[str, Any]], configured: dict[str, Any] | None, selection: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The documents that have this upstream, with it alone. Raises `ToolError(NOT_FOUND)`."""
    documents = running if configured is None else [configured]
    found = [(one, [each for each in one["upstreams"] if each["name"] == server]) for one in documents]
    kept = [{**document, "upstreams": upstreams} for document, upstreams in found if upstreams]
    if not kept and configured is None:
        # None of those that run has it; the settings here may.
        return _only(server, [], _configured(selection), selection)
    if not kept:
        raise unknown_server(server, (each["name"] for one in documents for each in one["upstreams"]))
    return (kept, None) if configured is None else ([], kept[0])


def _with_last_runs(document: Mapping[str, Any], earlier: Mapping[str, LastRun]) -> dict[str, Any]:
    runs = [(upstream, earlier.get(upstream.get("record", ""))) for upstream in document["upstreams"]]
    return {
        **document,
        "upstreams": [{**upstream, "last_run": run.wire() if run else None} for upstream, run in runs],
    }


def _configured(selection: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a gateway that was built and not run."""
    from goat_mcp.gateway.gateway import Gateway

    settings = flags.settings_from(**selection)
    flags.say_notices(settings)
    gateway = Gateway(settings, approval=settings.approval.by or Approval.HOST)
    document = gateway.status.document()
    # It is no server: these would speak of this very command.
    told = {
        name: value
        for name, value in document.items()
        if name not in ("pid", "transport", "started", "how_started", "system")
    }
    return {**told, "upstreams": [{**entry, "since": None} for entry in told["upstreams"]]}


def _who(document: Mapping[str, Any]) -> str:
    where = ", ".join(document["workspace"]) or "no workspace yet"
    return (
        f"goat-mcp {document['version']}, process {document['pid']}, {document['transport']}, "
        f"since {document['started']}, in {where}"
    )


def _print(document: Mapping[str, Any], head: str, earlier: Mapping[str, LastRun]) -> None:
    out = console()
    say(head)
    sandbox, permissions = document["sandbox"], document["permissions"]
    say(
        f"mode {permissions['mode']}, asks go to {permissions['asks_go_to']}; sandbox {sandbox['name']}"
        + (f" ({sandbox['reason']})" if sandbox["reason"] else "")
        + _hooks(document["hooks"])
    )
    if how := document.get("how_started"):
        say("started by the resident process" if how == "resident" else f"started in a process of its own: {how}")
    if state := document.get("state"):  # an older server says nothing of it
        say(f"state: {state['where']}{_reached(state)}")
    if page := document.get("page"):
        say(f"page: {page} (goat-mcp ui opens it)")
    for one in document.get("running", ()):
        say(f"runs: {_running(one)}")
    limit = document.get("process_limit", {})  # an older server says nothing of it
    if limit.get("kind") == "none":
        say(f"the number of processes of a command is not limited: {limit['reason']}")
    upstreams: Sequence[Mapping[str, Any]] = document["upstreams"]
    if not upstreams:
        click.echo("no upstreams")
    else:
        headers = ["upstream", "state", "reason", "tools", "era", "since", "detail"]
        rows = [_row(upstream) for upstream in upstreams]
        if out.is_terminal:
            table = wrapped_table(headers, rows)
            for at, upstream in enumerate(upstreams):
                table.rows[at].style = _style(upstream)
            out.print(table)
        else:
            click.echo(
                "\n".join("\t".join(escaped(cell).replace("\n", " ") for cell in row) for row in (headers, *rows))
            )
    for line in _details(document, earlier):
        say(line.replace("\n", " "))


def _running(one: Mapping[str, Any]) -> str:
    """One call or background task."""
    what = one["tool"] or f"{one['kind']} task {one['title']}"
    by = f" of {one['client']}" if one["client"] else ""
    progress: Mapping[str, Any] = one["progress"] or {}
    how_far = f", {progress['done']:g} of {progress['total']:g}" if progress.get("total") else ""
    message = f": {progress['message']}" if progress.get("message") else ""
    since = span(max(0, round(time.time() - one["started_s"])))
    return f"{what}{by}, principal {one['principal']}, for {since}{how_far}{message} ({one['id']})".replace("\n", " ")


def _row(upstream: Mapping[str, Any]) -> list[str]:
    return [
        str(upstream["name"]),
        str(upstream["state"]),
        str(upstream["reason_code"]),
        str(upstream["tool_count"]),
        str(upstream["version"]),
        str(upstream["since"] or ""),
        _detail(upstream),
    ]


def _detail(upstream: Mapping[str, Any]) -> str:
    again = f"next try {upstream['next_try']}" if upstream["next_try"] else ""
    age = f"catalog {span(upstream['catalog_age_s'])} old" if upstream["catalog_age_s"] is not None else ""
    return "; ".join(part for part in (str(upstream["detail"]), again, age) if part)


def _print_one(document: Mapping[str, Any], head: str, earlier: Mapping[str, LastRun]) -> None:
    """All that is known of one upstream, a fact a line."""
    say(head)
    (upstream,) = document["upstreams"]
    run = earlier.get(upstream.get("record", ""))
    hidden = ("name", "record", "stderr_tail", "last_failure", "rejected", "collisions")
    facts = {key: value for key, value in upstream.items() if key not in hidden and value not in ("", None, [], 0)}
    facts["last failure"] = failure_line(run) if run is not None and run.failed_at_s else "none is known"
    width = max(map(len, facts))
    click.echo(escaped(upstream["name"]))
    for key, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        say(f"  {key.replace('_', ' '):<{width}}  {text}".replace("\n", " "))
    lines = upstream["stderr_tail"].splitlines() or (run.stderr_lines if run is not None else [])
    for line in ("  its stderr ends:", *(f"    {line}" for line in lines)) if lines else ():
        click.echo(escaped(line))
    for line in _details({**document, "problems": [], "ignored_keys": []}, {}, with_stderr=False):
        say(f"  {line}".replace("\n", " "))


def _style(upstream: Mapping[str, Any]) -> str:
    if upstream["state"] in _TROUBLE:
        return "red"
    return "yellow" if upstream["reason_code"] else ("green" if upstream["state"] == "ready" else "")


def _hooks(hooks: Sequence[Mapping[str, Any]]) -> str:
    if not hooks:
        return ""
    passing = sum(not hook["failure_denies"] for hook in hooks)
    return f"; {len(hooks)} hooks" + (f", {passing} of which let the call go on if they fail" if passing else "")


def _kind(rejected: Mapping[str, Any]) -> str:
    """What it is, if it is no tool."""
    kind = rejected.get("kind", "tool")
    return "" if kind == "tool" else f"{kind} "


def _reached(state: Mapping[str, Any]) -> str:
    """Whether the state that servers share could be used the last time."""
    if not state["is_shared"] or "reachable" not in state:
        return " (shared with other servers)" if state["is_shared"] else ""
    return " (shared, reachable)" if state["reachable"] else f" (shared, OUT OF REACH: {state['problem']})"


def _shared(sharing: Mapping[str, Any]) -> str:
    """Who uses the process of an upstream that is shared."""
    if not sharing["is_shared"]:
        return f"not shared: {sharing['reason']}"
    users = ", ".join(map(str, sharing["sessions"]))
    process = f"process {sharing['pid']} of broker {sharing['broker_pid']}"
    return f"shared: {process}, works in {sharing['folder']}, used by goat-mcp {users}"


def _details(document: Mapping[str, Any], earlier: Mapping[str, LastRun], *, with_stderr: bool = True) -> list[str]:
    """What is not used, each with its reason: nothing vanishes without a line."""
    lines: list[str] = []
    for upstream in document["upstreams"]:
        name = upstream["name"]
        lines += [
            f"{name}: rejected: {_kind(each)}{each['name'] or '(no name)'}: {each['reason_code']}: {each['reason']}"
            for each in upstream.get("rejected", ())  # another build may serve
        ]
        lines += [f"{name}: name_collision: {collision}" for collision in upstream["collisions"]]
        if sharing := upstream.get("sharing"):
            lines.append(f"{name}: {_shared(sharing)}")
        run = earlier.get(upstream.get("record", ""))
        if run is not None and is_news(run) and not upstream["reason_code"]:
            lines.append(f"{name}: {failure_line(run)}")
            if run.worked_at_s <= run.failed_at_s and run.stderr_lines:
                lines.append(f"{name}: stderr: {run.stderr_lines[-1]}")
        if with_stderr and upstream["stderr_tail"] and upstream["reason_code"]:
            lines.append(f"{name}: stderr: {upstream['stderr_tail'].splitlines()[-1]}")
    told = {(upstream["name"], upstream["reason_code"]) for upstream in document["upstreams"]}
    lines += [
        f"{problem['name']}: {problem['reason_code']}: {problem['detail']}"
        for problem in document["problems"]
        if (problem["name"], problem["reason_code"]) not in told and problem["reason_code"] != "name_collision"
    ]
    return lines + [f"{each['name']}: {each['detail']}" for each in document["ignored_keys"]]
