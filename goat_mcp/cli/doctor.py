"""`goat-mcp doctor`: what is wrong with the configuration and the upstreams, each with its remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.hosts.entry_check import examine_host_files
from goat_mcp.cli.hosts.this_account import this_account
from goat_mcp.cli.install_options import settings_name_workspace
from goat_mcp.cli.server_records import age, failure_line, is_news, last_runs, unknown_server
from goat_mcp.cli.terminal import console, escaped, say
from goat_mcp.cli.waiting import Waiting, waiting_for
from goat_mcp.core.errors import ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.system_keyring import SystemKeyring
from goat_mcp.upstreams.status import UpstreamStatus

if TYPE_CHECKING:  # loaded when the command runs
    from goat_mcp.commands.sandbox.sandbox import SandboxState
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.gateway.status.doctor import Finding
    from goat_mcp.gateway.status.last_runs import LastRun


@click.command
@click.argument("servers", nargs=-1, metavar="[SERVER]...")
@flags.selection
@flags.as_json
def doctor(servers: Sequence[str], as_json: bool, **selection: Any) -> int:
    """Check the settings, the files and each upstream: it is started, and what it lists is looked at.

    It lists what this system offers and lacks, too. No tool is called. Exit status: 0 nothing must be fixed, 1 the
    configuration, 3 a login or token, 4 an upstream that cannot be reached, 5 one that fails to list, 6 a schema that
    clients refuse.
    """
    from goat_mcp.cli.resident.linux_running import find_residents
    from goat_mcp.gateway.build.working_directories import refused_by_state
    from goat_mcp.gateway.status.doctor import USAGE, Finding, exit_status, system_findings
    from goat_mcp.gateway.status.shared_server import shared_server_lines
    from goat_mcp.gateway.status.system_features import as_document, system_features, table

    features = system_features()
    residents = find_residents()
    statuses: list[UpstreamStatus] = []
    earlier: Mapping[str, LastRun] = {}
    checked = ["settings"]
    shared: Sequence[str] = ()
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
        shared = shared_server_lines(settings)
        only = _chosen(gateway, servers)
        earlier = _last_runs_by_name(gateway)
        with waiting_for("starting the servers") as line:
            examined, sandbox, has_keychain = anyio.run(_examine, gateway, only, statuses, line)
        features = system_features(sandbox, has_keychain=has_keychain)
        of_hosts = examine_host_files(this_account(), has_workspace=settings_name_workspace())
        findings = [
            *(Finding(id="notice", detail=notice, fix="Fix the file it names.") for notice in settings.notices),
            *of_hosts.findings,
            *examined,
        ]
        findings = [_redacted(gateway, finding) for finding in findings]
        counts = (
            (of_hosts.count, "host file"),
            (len(settings.upstreams), "file of servers"),
            (len(statuses), "server"),
        )
        checked += [_counted(count, what) for count, what in counts]
        checked += ["hooks", "manifests", "sandbox", "state directory"]
        checked += (
            [] if gateway.services.shared is None else [f"state at {gateway.services.shared.connection.address.shown}"]
        )
    findings += system_findings(features)
    code = exit_status(findings)
    if as_json:
        upstreams = [
            {
                "name": one.name,
                "state": str(one.state),
                "tools": one.tool_count,
                "last_run": earlier[one.name].wire() if one.name in earlier else None,
            }
            for one in statuses
        ]
        document = {
            "findings": [finding.wire() for finding in findings],
            "upstreams": upstreams,
            "system": as_document(features),
            "resident": residents.wire(),
            "shared_server": list(shared),
            "checked": checked,
            "exit_status": code,
        }
        click.echo(json.dumps(document))
    else:
        for status in statuses:
            _say(status, earlier.get(status.name))
        for text in table(features):
            say(text)
        say(residents.line())
        for text in shared:
            say(f"serve --http: {text}")
        _print([finding for finding in findings if not finding.is_info], checked)
    return code


async def _examine(
    gateway: Gateway, only: Collection[str], statuses: list[UpstreamStatus], line: Waiting
) -> tuple[list[Finding], SandboxState, bool]:
    """What is found, what a command would run in, and whether there is a keychain."""
    from goat_mcp.gateway.status import doctor as examination

    missing = [config.name for config in gateway.upstreams.configs if not only or config.name in only]

    def report(status: UpstreamStatus) -> None:
        statuses.append(status)
        if status.name in missing:
            missing.remove(status.name)
        line.update(f"waiting for {', '.join(missing)}" if missing else "looking at files and the sandbox")

    line.update(f"starting {', '.join(missing)}" if missing else "looking at files and the sandbox")
    async with gateway.running():
        found = await examination.upstreams_examined(gateway.upstreams, only, report)
        sandbox = await gateway.services.sandbox().state()
        silent = gateway.diagnostics.silent_hooks()
        unreachable = [
            *await _unreachable_people(gateway),
            *await _unreachable_provider(gateway),
            *await _shared_state(gateway),
        ]
    findings = [
        *found,
        *examination.hook_findings(silent),
        *unreachable,
        *examination.declared_findings(gateway.diagnostics.declared.problems()),
        *examination.ignored_keys(gateway.upstreams, only),
        *examination.sandbox_findings(sandbox),
        *(await examination.surroundings_examined(gateway.settings, gateway.state)),
    ]
    return findings, sandbox, await anyio.to_thread.run_sync(SystemKeyring().is_there)


async def _unreachable_people(gateway: Gateway) -> list[Finding]:
    """Entries of `approval.notify` that cannot be used. Nothing is sent."""
    if not gateway.settings.approval.notify:
        return []
    from goat_mcp.gateway.approvals.notify.build import configured_channels
    from goat_mcp.gateway.status.doctor import Finding

    found: list[Finding] = []
    for place, channel in configured_channels(gateway.settings.approval.notify, gateway.services).channels:
        try:
            await channel.check()
        except ToolError as failed:
            found.append(Finding(id="notify", about=place, detail=failed.message, fix=failed.suggestion))
    return found


async def _unreachable_provider(gateway: Gateway) -> list[Finding]:
    """`identity.issuer`, if its keys cannot be read: nobody would get in with its tokens."""
    if not gateway.settings.identity.is_on:
        return []
    from goat_mcp.gateway.status.doctor import UNREACHABLE, Finding
    from goat_mcp.server.identity.provider_keys import ProviderKeys

    problem = await ProviderKeys(gateway.settings.identity, gateway.services.http).try_out()
    fix = "Correct identity.issuer or identity.jwks_url, or wait until the provider answers."
    about = gateway.settings.identity.issuer
    return [Finding(id="identity", about=about, detail=problem, fix=fix, exit_code=UNREACHABLE)] if problem else []


async def _shared_state(gateway: Gateway) -> list[Finding]:
    if gateway.services.shared is None:
        return []
    from goat_mcp.gateway.status.shared_state_check import shared_state_examined

    return await shared_state_examined(gateway.services.shared.connection)


def _chosen(gateway: Gateway, servers: Sequence[str]) -> list[str]:
    """The upstreams meant, by name. Raises `ToolError(NOT_FOUND)` for one that is not configured."""
    known = [status.name for status in gateway.upstreams.status()]
    for server in servers:
        if server not in known:
            raise unknown_server(server, known)
    return list(servers)


def _last_runs_by_name(gateway: Gateway) -> dict[str, LastRun]:
    from goat_mcp.gateway.status.last_runs import record_key

    runs = last_runs()
    keys = {config.name: record_key(config) for config in gateway.upstreams.configs}
    return {name: runs[key] for name, key in keys.items() if key in runs}


def _counted(count: int, what: str) -> str:
    several = what.replace("file of", "files of") if " of " in what else f"{what}s"
    return f"{count} {what if count == 1 else several}"


def _redacted(gateway: Gateway, finding: Finding) -> Finding:
    return replace(finding, detail=gateway.redactor.text(finding.detail), fix=gateway.redactor.text(finding.fix))


def _say(status: UpstreamStatus, run: LastRun | None) -> None:
    shown = "ok" if not status.reason_code else str(status.reason_code)
    what = f"{status.tool_count} tools, {status.version}" if status.version else str(status.state)
    before = ""
    if run is not None and is_news(run):
        is_the_same = run.reason_code == status.reason_code and run.worked_at_s <= run.failed_at_s
        before = f", for {age(run.failed_at_s)}" if is_the_same else f"; {failure_line(run)}"
    line = escaped(f"{status.name}: {shown} ({what}){before}")
    if sys.stdout.isatty():
        from rich.text import Text

        console().print(Text(line, style="green" if shown == "ok" else "red"))
    else:
        click.echo(line)


def _print(findings: Sequence[Finding], checked: Sequence[str]) -> None:
    for finding in findings:
        about = f" {finding.about}:" if finding.about else ""
        say(f"{finding.severity}: {finding.id}:{about} {finding.detail}".replace("\n", " ").strip())
        if finding.fix:
            say(f"  {finding.fix}")
    errors = sum(bool(finding.exit_code) for finding in findings)
    say(f"\nchecked: {', '.join(checked)}: {errors} to fix, {len(findings) - errors} to know")
