"""`goat-mcp import`: the servers of other hosts in our upstreams file, and with `--move` goat-mcp in their place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import OK, USAGE
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import project as project_flag
from goat_mcp.cli.host_changes import refuse_a_model
from goat_mcp.cli.host_changes import windows_home as windows_home_flag
from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.importing import carry_out, plan_import
from goat_mcp.cli.hosts.plain_secrets import PlainSecret
from goat_mcp.cli.hosts.sources import Source, Unreadable, one_source, readable_sources, source_from
from goat_mcp.cli.hosts.switches import off_switch
from goat_mcp.cli.hosts.table import hosts_in, known_hosts
from goat_mcp.cli.hosts.this_account import chosen_host, this_account
from goat_mcp.cli.import_report import import_document, print_import
from goat_mcp.cli.terminal import confirmed, escaped
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.cli.workspace_choice import is_answered
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.directory import StateDirectory, own_upstreams_file
from goat_mcp.state.secret_store import SecretStore, SecretTrouble


@click.command("import", epilog=known_hosts(pasted=False))
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@click.option("--from", "from_file", type=click.Path(path_type=Path), metavar="FILE", help="Read this file instead.")
@click.option(
    "--into", type=click.Path(path_type=Path), metavar="FILE", help="Write here, not into your own upstreams."
)
@project_flag
@windows_home_flag
@click.option("--move", is_flag=True, help="Leave goat-mcp alone in the host's file; `goat-mcp eject` undoes it.")
@click.option(
    "--secrets",
    type=click.Choice(["move", "keep"]),
    help="Store secrets that stand in plain text, as `goat-mcp secret set` does, or keep them. On a terminal: asks.",
)
@dry_run_flag
@flags.as_json
def import_servers(
    hosts: Sequence[str],
    from_file: Path | None,
    into: Path | None,
    project: Path | None,
    windows_home: str | None,
    move: bool,
    secrets: Literal["move", "keep"] | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Take over the MCP servers of other hosts, so that goat-mcp stands in front of them.

    Without a HOST, all that are found are read. What you have already is never changed, and nothing comes twice.
    A file that cannot be read is skipped, and listed at the end.
    """
    if move and not hosts:
        raise click.UsageError(
            "--move changes a host's file; name the host, e.g. goat-mcp import claude-desktop --move"
        )
    if from_file is not None and len(hosts) > 1:
        raise click.UsageError("--from reads one file; name at most one host")
    refuse_a_model(dry_run)
    environment = this_account(windows_home)
    target = (into or own_upstreams_file()).absolute()
    sources, broken = _sources(hosts, from_file, project, environment)
    if move and len(sources) > 1:
        sources, unmovable = _movable(sources, target, environment)
        broken += unmovable
    plan = plan_import(sources, target, environment, move=move)
    if move and into is None:
        _check_that_ours_counts()
    state = StateDirectory.default()
    may_ask = is_answered() and not as_json and not dry_run
    if secrets == "move" or (secrets is None and may_ask and plan.new_secrets and _wants_stored(plan.new_secrets)):
        plan = plan_import(sources, target, environment, move=move, names_of_secrets=_stored_names(state))
    if not dry_run:
        with waiting_for("the keyring, which may ask you to unlock it" if plan.stored else "the files"):
            carry_out(plan, state)
    if as_json:
        click.echo(json.dumps(import_document(plan, broken, dry_run)))
    else:
        print_import(plan, broken, dry_run)
    return USAGE if hosts and broken else OK


def _sources(
    hosts: Sequence[str], from_file: Path | None, project: Path | None, environment: HostEnvironment
) -> tuple[list[Source], list[Unreadable]]:
    """What to import from, and which files cannot be read. Raises `ToolError` if nothing is left to import from."""
    folder = None if project is None else project.resolve()
    named = [chosen_host(name, environment, in_project=folder is not None) for name in hosts]
    if from_file is not None:
        return [source_from(from_file.expanduser(), named[0] if named else None, folder)], []
    readable, broken = readable_sources(named or hosts_in(environment, folder), environment, folder)
    if len(named) == 1 and not (readable or broken):
        one_source(named[0], environment, folder)  # says why there is none
    every: list[Source] = []
    for source in readable:
        try:
            off_switch(source, environment)
            every.append(source)
        except ToolError as problem:
            broken.append(Unreadable(source.host, source.file.path, problem))
    found = [source for source in every if source.file.data is not None]
    if not found and broken:
        raise broken[0].problem
    if not found:
        places = ", ".join(dict.fromkeys(str(source.file.path) for source in every)) if named else "any host's place"
        raise ToolError(ErrorCode.NOT_FOUND, f"there is no file of servers in {places}", "Name one with --from.")
    return found, broken


def _movable(
    sources: Sequence[Source], into: Path, environment: HostEnvironment
) -> tuple[list[Source], list[Unreadable]]:
    """Of several files, those that can be edited. Raises `ToolError` if there is none."""
    found: list[Source] = []
    broken: list[Unreadable] = []
    for source in sources:
        try:
            plan_import([source], into, environment, move=True)
            found.append(source)
        except ToolError as problem:
            broken.append(Unreadable(source.host, source.file.path, problem))
    if not found:
        raise broken[0].problem
    return found, broken


def _wants_stored(secrets: Sequence[PlainSecret]) -> bool:
    named = ", ".join(f"{secret.server} ({secret.where})" for secret in secrets)
    what = "1 secret stands" if len(secrets) == 1 else f"{len(secrets)} secrets stand"
    return confirmed(
        f"{what} in plain text: {escaped(named)}. Store them in the keyring, or in a file that only you can read, "
        "with references in their place?"
    )


def _stored_names(state: StateDirectory) -> list[str]:
    try:
        return [secret.name for secret in SecretStore(state).names()]
    except SecretTrouble as trouble:
        raise ToolError(ErrorCode.CONFIG, str(trouble), "Nothing was changed.") from None


def _check_that_ours_counts() -> None:
    """Raises `ToolError` if the user's settings name other upstreams: goat-mcp would not read what was moved."""
    settings = load_settings({})
    ours = own_upstreams_file()
    if settings.source_of("upstreams") == "file" and ours.resolve() not in [
        path.resolve() for path in settings.upstreams
    ]:
        raise ToolError(
            ErrorCode.CONFIG,
            f"your goat-mcp.yaml names its own upstreams, and {ours} is not one of them",
            f"Nothing was changed. Add {ours} to upstreams there, or import into one of those with --into.",
        )
