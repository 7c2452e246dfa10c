"""`goat-mcp doctor`: what is wrong with the configuration and the upstreams, each with its remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.terminal import console, escaped
from goat_mcp.core.errors import ToolError
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.status import UpstreamStatus

if TYPE_CHECKING:  # loaded when the command runs
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.gateway.status.doctor import Finding


@click.command
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@flags.selection
@flags.as_json
def doctor(servers: Sequence[str], as_json: bool, **selection: Any) -> int:
    """Check the settings, the files and each upstream: it is started, and what it lists is looked at.

    No tool is called. Exit status: 0 nothing must be fixed, 1 the configuration, 3 a login or token, 4 an upstream
    that cannot be reached, 5 one that fails to list, 6 a schema that clients refuse.
    """
    from goat_mcp.gateway.build.working_directories import refused_by_state
    from goat_mcp.gateway.status.doctor import USAGE, Finding, exit_status

    checked: list[UpstreamStatus] = []

    def report(status: UpstreamStatus) -> None:
        checked.append(status)
        if not as_json:
            _say(status)

    try:
        # What would be logged is what we are about to say.
        settings = flags.settings_from(**selection, defaults={"log_level": "error"})
        from goat_mcp.gateway.gateway import Gateway

        gateway = Gateway(settings, approval=Approval.DENY)
    except (ToolError, OSError) as problem:
        broken = problem if isinstance(problem, ToolError) else refused_by_state(problem, StateDirectory.default())
        if broken is None:
            raise
        findings = [Finding(id="settings", detail=broken.message, fix=broken.suggestion, exit_code=USAGE)]
    else:
        only = _chosen(gateway, servers)
        findings = [
            *(Finding(id="notice", detail=notice, fix="Fix the file it names.") for notice in settings.notices),
            *anyio.run(_examine, gateway, only, report),
        ]
        findings = [_redacted(gateway, finding) for finding in findings]
    code = exit_status(findings)
    if as_json:
        document = {
            "findings": [finding.wire() for finding in findings],
            "upstreams": [{"name": one.name, "state": str(one.state), "tools": one.tool_count} for one in checked],
            "exit_status": code,
        }
        click.echo(json.dumps(document))
    else:
        _print(findings)
    return code


async def _examine(gateway: Gateway, only: Collection[str], report: Any) -> list[Finding]:
    from goat_mcp.gateway.status import doctor as examination

    async with gateway.running():
        found = await examination.upstreams_examined(gateway.upstreams, only, report)
        sandbox = await gateway.services.sandbox().state()
        silent = gateway.diagnostics.silent_hooks()
    return [
        *found,
        *examination.hook_findings(silent),
        *examination.ignored_keys(gateway.upstreams, only),
        *examination.sandbox_findings(sandbox),
        *(await examination.surroundings_examined(gateway.settings, gateway.state)),
    ]


def _chosen(gateway: Gateway, servers: Sequence[str]) -> list[str]:
    """The upstreams meant, by name. Raises `click.UsageError` for one that is not configured."""
    known = [status.name for status in gateway.upstreams.status()]
    for server in servers:
        if server not in known:
            hint = did_you_mean(server, known) or f"there are {', '.join(known) or 'none'}"
            raise click.UsageError(f"no upstream is called {server!r}; {hint}")
    return list(servers)


def _redacted(gateway: Gateway, finding: Finding) -> Finding:
    return replace(finding, detail=gateway.redactor.text(finding.detail), fix=gateway.redactor.text(finding.fix))


def _say(status: UpstreamStatus) -> None:
    """One line as soon as an upstream is done: on a terminal people see that something happens."""
    shown = "ok" if not status.reason_code else str(status.reason_code)
    what = f"{status.tool_count} tools, {status.version}" if status.version else str(status.state)
    line = escaped(f"{status.name}: {shown} ({what})")
    if sys.stdout.isatty():
        from rich.text import Text

        console().print(Text(line, style="green" if shown == "ok" else "red"))
    else:
        click.echo(line)


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        about = f" {finding.about}:" if finding.about else ""
        click.echo(escaped(f"\n{finding.severity}: {finding.id}:{about} {finding.detail}".replace("\n", " ").strip()))
        if finding.fix:
            click.echo(escaped(f"  {finding.fix}"))
    errors = sum(bool(finding.exit_code) for finding in findings)
    click.echo(f"{errors} to fix, {len(findings) - errors} to know" if findings else "Nothing found.")
