"""`goat-mcp config preset`: the sets of tools there are, and which of them is in use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.catalog.presets import PRESET_PREFIX, own_presets
from goat_mcp.cli import exit_codes, flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import refuse_a_model
from goat_mcp.cli.settings_file import edit_fields, say_edit
from goat_mcp.cli.settings_file import in_project as project_flag
from goat_mcp.cli.terminal import print_table, say
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.settings.loading import load_settings

if TYPE_CHECKING:
    from goat_mcp.settings.settings import Settings

_KEY = "catalog.allow"


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "all_tools", is_flag=True, help="All tools again: no preset.")
@project_flag
@dry_run_flag
@flags.as_json
def preset(names: Sequence[str], all_tools: bool, in_project: bool, dry_run: bool, as_json: bool) -> int:
    """Serve only the tools of these presets; without a NAME, list the presets.

    It sets catalog.allow of your goat-mcp.yaml. Running servers follow within 2 seconds.
    """
    if names and all_tools:
        raise click.UsageError("--all goes without a name: it means no preset")
    if not names and not all_tools:
        return _list(load_settings({}), as_json)
    refuse_a_model(dry_run, "change settings")
    from goat_mcp.gateway.settings_edit import edited_settings, without_key
    from goat_mcp.settings.yaml_text import edited_yaml
    from goat_mcp.state.file_edit import edit_alone

    known = _presets(load_settings({}))
    chosen = [name.removeprefix(PRESET_PREFIX) for name in names]
    for name in chosen:
        if name not in known:
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise ToolError(
                ErrorCode.NOT_FOUND, f"no preset is called {name!r:.100}; {hint}", "See: goat-mcp config preset"
            )
    words = [f"{PRESET_PREFIX}{name}" for name in chosen]
    with edit_alone():
        edit = edited_settings(
            in_project, lambda text: edited_yaml(text, _KEY.split("."), words) if words else without_key(text, _KEY)
        )
        if not dry_run:
            edit.write()
    if as_json:
        click.echo(json.dumps({"presets": chosen, **edit_fields(edit, dry_run=dry_run)}))
    else:
        say_edit(edit, dry_run=dry_run)
        _warn_if_other_decides(chosen, dry_run)
    return exit_codes.OK


def _presets(settings: Settings) -> dict[str, Sequence[str]]:
    return {**own_presets(), **settings.catalog.presets}


def _list(settings: Settings, as_json: bool) -> int:
    used = [name.removeprefix(PRESET_PREFIX) for name in settings.catalog.allow or () if name.startswith(PRESET_PREFIX)]
    found: list[dict[str, Any]] = [
        {"name": name, "in_use": name in used, "holds": list(entries)} for name, entries in _presets(settings).items()
    ]
    if as_json:
        click.echo(json.dumps(found))
    else:
        rows = [[one["name"], "yes" if one["in_use"] else "", ", ".join(one["holds"])] for one in found]
        print_table(["preset", "in use", "holds"], rows)
    return exit_codes.OK


def _warn_if_other_decides(chosen: Sequence[str], dry_run: bool) -> None:
    settings = load_settings({})
    source = settings.source_of("catalog.allow")
    wanted = [f"{PRESET_PREFIX}{name}" for name in chosen]
    if not dry_run and list(settings.catalog.allow or ()) != wanted:
        say(f"goat-mcp: catalog.allow of the {source} decides here, and says otherwise", err=True)
