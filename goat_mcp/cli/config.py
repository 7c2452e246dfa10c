"""`goat-mcp config`: settings read, changed and checked, without editing YAML by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

import click

from goat_mcp.cli import exit_codes, flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import refuse_a_model
from goat_mcp.cli.preset import preset
from goat_mcp.cli.settings_file import edit_fields, say_edit
from goat_mcp.cli.settings_file import in_project as project_flag
from goat_mcp.cli.terminal import escaped, print_table, say
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.gateway.settings_edit import edited_settings, settings_path, value_in, without_key
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import (
    ENV_PREFIX,
    SECRET_NAMES,
    SHORT_KEYS,
    Settings,
    path_keys,
    setting_keys,
    setting_types,
)
from goat_mcp.settings.view import ConfigView
from goat_mcp.settings.watched_settings import FOLLOWED
from goat_mcp.settings.yaml_text import edited_yaml, read_yaml
from goat_mcp.state.file_edit import edit_alone

if TYPE_CHECKING:
    from goat_mcp.gateway.settings_check import FileProblem


@click.group()
def config() -> None:
    """Read, change and check settings. `goat-mcp config list` shows those that somebody has set."""


@config.command("get")
@click.argument("key")
@flags.workspace
@flags.as_json
def get_(key: str, workspace: Sequence[str], as_json: bool) -> int:
    """Print the value of KEY, and on stderr where it comes from. A group such as `catalog` prints all of it."""
    settings = load_settings({"workspace": workspace} if workspace else {})
    key = SHORT_KEYS.get(key, key)
    keys = [key] if _is_known(key) else [one for one in setting_keys() if one.startswith(f"{key}.")]
    if not keys:
        raise _no_setting(key)
    found = [_fields(settings, one) for one in keys]
    if as_json:
        click.echo(json.dumps(found[0] if keys == [key] else found))
    elif keys == [key]:
        click.echo(escaped(_shown(found[0]["value"])))
        say(f"from {found[0]['origin']}", err=True)
    else:
        _print(found)
    return exit_codes.OK


@config.command("list")
@click.argument("word", default="")
@click.option("--all", "show_all", is_flag=True, help="Settings that have their default, too.")
@flags.workspace
@flags.as_json
def list_(word: str, show_all: bool, workspace: Sequence[str], as_json: bool) -> int:
    """List the settings that somebody has set, or all whose key contains WORD."""
    settings = load_settings({"workspace": workspace} if workspace else {})
    keys = [key for key in setting_keys() if word in key]
    if word and not keys:
        raise _no_setting(word)
    found = [_fields(settings, key) for key in keys]
    if not word and not show_all:
        found = [one for one in found if one["source"] != "default"]
    if as_json:
        click.echo(json.dumps(found))
    else:
        _print(found)
        if not found:
            say("Nothing is set: all settings have their defaults. See: goat-mcp config list --all", err=True)
    return exit_codes.OK


@config.command("set")
@click.argument("key")
@click.argument("values", nargs=-1, required=True, metavar="VALUE...")
@project_flag
@dry_run_flag
@flags.as_json
def set_(key: str, values: Sequence[str], in_project: bool, dry_run: bool, as_json: bool) -> int:
    """Set KEY in your goat-mcp.yaml; comments stay. A list takes several values, or JSON: '["Bash", "Edit"]'."""
    refuse_a_model(dry_run, "change settings")
    key = SHORT_KEYS.get(key, key)
    if not _is_known(key):
        raise _no_setting(key)
    value = _value_of(key, values)

    def with_value(text: str) -> str:
        return edited_yaml(_in_long_form(text, key), key.split("."), value)

    return _write(key, with_value, in_project, dry_run, as_json)


@config.command()
@click.argument("key")
@project_flag
@dry_run_flag
@flags.as_json
def unset(key: str, in_project: bool, dry_run: bool, as_json: bool) -> int:
    """Take KEY out of your goat-mcp.yaml, so that its default holds."""
    refuse_a_model(dry_run, "change settings")
    key = SHORT_KEYS.get(key, key)

    def without(text: str) -> str:
        text = _in_long_form(text, key)
        if value_in(read_yaml(text), key) is None:
            if not _is_known(key):
                raise _no_setting(key)
            raise ToolError(ErrorCode.NOT_FOUND, f"{key} is not set there", f"See: goat-mcp config get {key}")
        return without_key(text, key)

    return _write(key, without, in_project, dry_run, as_json)


@config.command("path")
@flags.as_json
def path_(as_json: bool) -> int:
    """Print the files and directories that goat-mcp reads here."""
    from goat_mcp.state.directory import StateDirectory, own_manifests_folder, own_upstreams_file

    places = {
        "settings": settings_path(False),
        "settings of this project": settings_path(True),
        "servers": own_upstreams_file(),
        "manifests": own_manifests_folder(),
        "state": StateDirectory.default().path,
    }
    found = [{"what": what, "path": str(path), "exists": os.path.lexists(path)} for what, path in places.items()]
    if as_json:
        click.echo(json.dumps(found))
    else:
        print_table(["what", "path", "there"], [[str(o["what"]), str(o["path"]), _yes(o["exists"])] for o in found])
    return exit_codes.OK


@config.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@flags.as_json
def validate(files: Sequence[Path], as_json: bool) -> int:
    """Report every problem of FILE with its line: a goat-mcp.yaml, or a JSON file of servers.

    Without FILE: yours, the project's, and your upstreams.json. Exit status 1 if there is a problem.
    """
    from goat_mcp.gateway.settings_check import problems_of_file
    from goat_mcp.state.directory import own_upstreams_file

    chosen = [file.expanduser().absolute() for file in files] or [
        file for file in (settings_path(False), settings_path(True), own_upstreams_file()) if os.path.lexists(file)
    ]
    found = [(file, problems_of_file(file)) for file in chosen]
    if as_json:
        click.echo(json.dumps([_file_fields(file, problems) for file, problems in found]))
    else:
        for file, problems in found:
            say(f"{file}: {len(problems) or 'no'} problem{'s' * (len(problems) != 1)}")
            for problem in problems:
                say(f"  {problem}")
        if not found:
            say("There is no settings file: all settings have their defaults.")
    return exit_codes.USAGE if any(problems for _, problems in found) else exit_codes.OK


config.add_command(preset)


def _write(key: str, edit: Callable[[str], str], in_project: bool, dry_run: bool, as_json: bool) -> int:
    with edit_alone():
        change = edited_settings(in_project, edit)
        if not dry_run:
            change.write()
    settings = load_settings({})
    is_followed = key in FOLLOWED
    if as_json:
        now = _fields(settings, key) if _is_known(key) and not dry_run else {}
        facts = {"key": key, **edit_fields(change, dry_run=dry_run), "followed": is_followed, "now": now}
        click.echo(json.dumps(facts))
        return exit_codes.OK
    say_edit(change, dry_run=dry_run, are_followed=is_followed)
    source = settings.source_of(key)
    expected = ("file", "default", "project") if in_project else ("file", "default")
    if not dry_run and source not in expected:
        say(f"goat-mcp: {_origin(settings, key)} sets {key}, too, and counts here", err=True)
    return exit_codes.OK


def _in_long_form(text: str, key: str) -> str:
    """The text with `approval: {by: deny}` for `approval: deny`, so that a key below it can be edited."""
    for short, long in SHORT_KEYS.items():
        held = value_in(read_yaml(text), short)
        if key.startswith(f"{short}.") and held is not None and not isinstance(held, dict):
            text = edited_yaml(text, [short], {long.removeprefix(f"{short}."): held})
    return text


def _is_known(key: str) -> bool:
    """Whether it is a setting, or one inside a setting that has names of the user's."""
    return key in setting_keys() or any(
        key.startswith(f"{known}.") for known, annotation in setting_types() if _is_mapping(annotation)
    )


def _is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) is not None and issubclass(_class_of(annotation), Mapping)


def _class_of(annotation: Any) -> type:
    found = get_origin(annotation)
    return found if isinstance(found, type) else object


def _takes_many(annotation: Any) -> bool:
    return get_origin(annotation) is tuple or any(_takes_many(inner) for inner in get_args(annotation))


def _no_setting(key: str) -> ToolError:
    groups = {known.rpartition(".")[0] for known in setting_keys()} - {""}
    if key in groups:
        return ToolError(ErrorCode.SETTING, f"{key} is a group of settings", f"See: goat-mcp config get {key}")
    known = [*setting_keys(), *groups]
    hint = did_you_mean(key, known)
    last = key.rpartition(".")[2]
    ends = [one for one in setting_keys() if one.rpartition(".")[2] == last][:5]
    hint = hint or (f"did you mean {', '.join(ends)}?" if ends else "")
    return ToolError(ErrorCode.SETTING, f"no setting {key!r:.100}" + (f"; {hint}" if hint else ""), _SEE_ALL)


_SEE_ALL = "See: goat-mcp config list --all"


def _value_of(key: str, texts: Sequence[str]) -> Any:
    """Raises `ToolError` for a secret that would stand in the file, and in the history of the shell."""
    if key.rpartition(".")[2] in SECRET_NAMES and not all("${" in text for text in texts):
        name = key.replace(".", "-").replace("_", "-")
        raise ToolError(
            ErrorCode.INPUT,
            f"{key} is a secret, and would stand in the file and in the history of your shell",
            f"Store it: goat-mcp secret set {name}; then: goat-mcp config set {key} '${{secret:{name}}}'",
        )
    values = [_parsed(text) for text in texts]
    if key in path_keys():
        values = [_absolute(value) for value in values]
    annotation = dict(setting_types()).get(key)
    if annotation is not None and _takes_many(annotation) and not _is_mapping(annotation):
        is_whole = len(values) == 1 and (values[0] is None or isinstance(values[0], list))
        return cast("Any", values[0]) if is_whole else values
    if len(values) > 1:
        raise click.UsageError(f"{key} takes one value, got {len(values)}; quote a text with blanks")
    return values[0]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _absolute(value: Any) -> Any:
    """A path as it is meant where it was typed: in the file it would start at the file's directory."""
    if isinstance(value, list):
        return [_absolute(one) for one in cast("list[Any]", value)]
    return str(Path(value).expanduser().absolute()) if isinstance(value, str) and value else value


def _fields(settings: Settings, key: str) -> dict[str, Any]:
    known = key if key in setting_keys() else next(one for one in setting_keys() if key.startswith(f"{one}."))
    value = ConfigView(settings).value(known)
    if known != key:
        value = value_in(value, key.removeprefix(f"{known}."))
    source = settings.source_of(known)
    return {"key": key, "value": value, "source": source, "origin": _origin(settings, key)}


def _origin(settings: Settings, key: str) -> str:
    """`FILE:LINE`, or in words."""
    known = key if key in setting_keys() else next((one for one in setting_keys() if key.startswith(f"{one}.")), key)
    source = settings.source_of(known)
    if source == "environment":
        return f"the environment variable {ENV_PREFIX}{known.upper().replace('.', '__')}"
    if source in ("file", "project"):
        from goat_mcp.gateway.settings_check import Lines

        projects = settings.project_files
        for file in reversed(settings.config_files):
            if (file in projects) == (source == "project") and (line := Lines(file.read_bytes()).of(key)):
                return f"{file}:{line}"
        return str(next(iter(settings.config_files), source))
    return "the default" if source == "default" else f"the {source}"


def _print(found: Sequence[Mapping[str, Any]]) -> None:
    print_table(["key", "value", "from"], [[one["key"], _shown(one["value"]), one["origin"]] for one in found])


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _yes(value: Any) -> str:
    return "yes" if value else "no"


def _file_fields(file: Path, problems: Sequence[FileProblem]) -> dict[str, Any]:
    told = [{"line": one.line, "key": one.key, "problem": one.what} for one in problems]
    return {"file": str(file), "ok": not problems, "problems": told}
