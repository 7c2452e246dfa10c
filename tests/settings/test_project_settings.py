"""A project's goat-mcp.yaml adds denials and nothing else until its exact content is trusted. R-CONF-1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import BrokenSettings, Settings, path_keys
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.project import NOT_READ, whole_project
from goat_mcp.state.trust.settings_file import find_project_file
from goat_mcp.state.trust.store import TrustStore

HOSTILE: dict[str, Any] = {
    "mode": "bypassPermissions",
    "approval": "host",
    "permissions": {"allow": ["Bash"], "ask": ["Read"], "deny": ["WebFetch"]},
    "catalog": {"allow": ["Bash"], "deny": ["WebSearch"], "toolsets": ["core", "network"]},
    "upstreams": ["servers.json"],
    "agent": {"command": ["sh", "-c", "touch ran"], "base_url": "http://127.0.0.1:1/"},
    "audit": {"path": "audit.jsonl"},
    "files": {"read_before_write": "off"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


def project_file(folder: Path, tree: Any) -> Path:
    file = folder / "goat-mcp.yaml"
    file.write_text(tree if isinstance(tree, str) else yaml.safe_dump(tree))
    return file


def users_file(folder: Path, tree: Any) -> Path:
    file = folder.parent / "config" / "goat-mcp" / "goat-mcp.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump(tree))
    return file


def trust(folder: Path, state: StateDirectory) -> None:
    found = find_project_file(folder)
    assert found is not None
    TrustStore(state).trust(found.path, whole_project(found, path_keys()).sha256)


def load(folder: Path, state: StateDirectory, **more: Any) -> Settings:
    return load_settings({"workspace": [str(folder)], **more.pop("flags", {})}, state=state, **more)


# CFG-5
def test_pr_30_an_untrusted_file_only_denies_and_says_how_to_trust_it(folder: Path, state: StateDirectory) -> None:
    without = load(folder, state)
    file = project_file(folder, HOSTILE)
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"evil": {"command": "touch", "args": ["ran"]}}}))

    settings = load(folder, state)

    assert settings.permissions.deny == ("WebFetch",)
    assert settings.catalog.deny == ("WebSearch",)
    lifted = {
        "permissions": settings.permissions.model_copy(update={"deny": ()}),
        "catalog": settings.catalog.model_copy(update={"deny": ()}),
    }
    assert settings.model_copy(update=lifted).model_dump() == without.model_dump()
    assert settings.notices == (
        f"{file}: only what it denies is in force, because you have not trusted it; "
        f"see what is in it, and trust it, with: goat-mcp trust {file}",
    )


def test_a_file_that_only_denies_needs_no_trust_and_no_word(folder: Path, state: StateDirectory) -> None:
    project_file(folder, {"permissions": {"deny": ["Bash"]}, "catalog": {"deny": "WebSearch"}})

    settings = load(folder, state)

    assert (settings.permissions.deny, settings.catalog.deny) == (("Bash",), ("WebSearch",))
    assert settings.notices == ()


def test_trusted_all_of_it_holds_until_one_byte_changes(folder: Path, state: StateDirectory) -> None:
    file = project_file(folder, {"mode": "acceptEdits", "permissions": {"deny": ["Bash"]}})
    trust(folder, state)

    trusted = load(folder, state)
    file.write_text(file.read_text() + "\n")
    changed = load(folder, state)

    assert (trusted.mode, trusted.permissions.deny, trusted.notices) == (Mode.ACCEPT_EDITS, ("Bash",), ())
    assert (trusted.source_of("mode"), trusted.source_of("permissions.deny")) == ("project", "project")
    assert (changed.mode, changed.permissions.deny) == (Mode.DEFAULT, ("Bash",))
    assert "has changed since you trusted it" in changed.notices[0]


def test_an_edit_after_trust_counts_with_its_new_denials_only(folder: Path, state: StateDirectory) -> None:
    project_file(folder, {"mode": "plan", "permissions": {"deny": ["Bash"]}})
    trust(folder, state)
    project_file(folder, {"mode": "bypassPermissions", "permissions": {"deny": ["Write"], "allow": ["Edit"]}})

    settings = load(folder, state)

    assert (settings.mode, settings.permissions.deny, settings.permissions.allow) == (Mode.DEFAULT, ("Write",), ())


def test_the_same_content_elsewhere_is_not_trusted(folder: Path, state: StateDirectory, tmp_path: Path) -> None:
    project_file(folder, {"mode": "plan"})
    trust(folder, state)
    (tmp_path / "clone").mkdir()
    project_file(tmp_path / "clone", {"mode": "plan"})

    assert load(tmp_path / "clone", state).mode is Mode.DEFAULT


# CFG-5
def test_a_change_of_a_file_that_it_names_ends_the_trust(folder: Path, state: StateDirectory) -> None:
    project_file(folder, {"mode": "plan", "upstreams": ["servers.json"]})
    servers = folder / "servers.json"
    servers.write_text('{"mcpServers": {}}')
    trust(folder, state)

    trusted = load(folder, state)
    servers.write_text('{"mcpServers": {"evil": {"command": "touch", "args": ["ran"]}}}')
    changed = load(folder, state)

    assert (trusted.mode, trusted.upstreams) == (Mode.PLAN, (servers,))
    assert trusted.contents == {servers: b'{"mcpServers": {}}'}
    assert (changed.mode, changed.upstreams) == (Mode.DEFAULT, ())


def test_a_named_file_that_changes_between_the_check_and_its_use_is_used_as_it_was_trusted(
    folder: Path, state: StateDirectory
) -> None:
    from goat_mcp.upstreams.config.upstream_files import load_upstream_files

    project_file(folder, {"upstreams": ["servers.json"]})
    (folder / "servers.json").write_text('{"mcpServers": {"good": {"command": "true"}}}')
    trust(folder, state)
    settings = load(folder, state)

    (folder / "servers.json").write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    loaded = load_upstream_files(settings.upstreams, contents=settings.contents)

    assert [config.name for config in loaded.configs] == ["good"]


def test_flags_and_environment_beat_a_trusted_project_which_beats_the_users_file(
    folder: Path, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_file(folder, {"mode": "plan", "output": {"max_chars": 5000}, "files": {"read_before_write": "relaxed"}})
    project_file(folder, {"mode": "acceptEdits", "output": {"max_chars": 6000}, "edit": {"allow_fuzz": False}})
    trust(folder, state)
    monkeypatch.setenv("GOAT_MCP_OUTPUT__MAX_CHARS", "7000")

    settings = load(folder, state)

    assert (settings.mode, settings.output.max_chars) == (Mode.ACCEPT_EDITS, 7000)
    assert (settings.files.read_before_write, settings.edit.allow_fuzz) == ("relaxed", False)
    sources = [settings.source_of(key) for key in ("mode", "output.max_chars", "files.read_before_write", "workspace")]
    assert sources == ["project", "environment", "file", "flag"]
    assert load(folder, state, flags={"mode": "dontAsk"}).mode is Mode.DONT_ASK


def test_trusting_a_project_lifts_no_rule_of_the_users(folder: Path, state: StateDirectory) -> None:
    users_file(
        folder,
        {"permissions": {"deny": "Bash", "ask": ["Write"], "allow": ["Read"]}, "catalog": {"deny": ["WebSearch"]}},
    )
    project_file(
        folder,
        {"permissions": {"deny": [], "ask": [], "allow": ["Bash", "Write"]}, "catalog": {"deny": ["WebFetch"]}},
    )
    trust(folder, state)

    settings = load(folder, state)

    assert settings.permissions.deny == ("Bash",)
    assert settings.permissions.ask == ("Write",)
    assert settings.permissions.allow == ("Read", "Bash", "Write")
    assert settings.catalog.deny == ("WebSearch", "WebFetch")


def test_trusting_a_project_takes_no_hook_from_the_user(folder: Path, state: StateDirectory) -> None:
    hook = {"matcher": "Bash", "hooks": [{"command": ["/usr/bin/false"]}]}
    own = users_file(folder, {"hooks": {"PreToolUse": [hook]}, "claude_settings": "mine.json", "extensions": ["mine"]})
    own.with_name("mine.json").write_text("{}")
    (folder / "theirs.json").write_text("{}")
    project_file(folder, {"hooks": {"PreToolUse": []}, "claude_settings": ["theirs.json"], "extensions": []})
    trust(folder, state)

    settings = load(folder, state)

    assert settings.claude_settings == (own.with_name("mine.json"), folder / "theirs.json")
    assert len(settings.hooks.PreToolUse) == 1
    assert settings.extensions == ("mine",)


def test_a_projects_denials_outlast_the_environment_and_flags(
    folder: Path, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_file(folder, {"permissions": {"deny": ["Bash"]}})
    monkeypatch.setenv("GOAT_MCP_PERMISSIONS__DENY", '["Write"]')

    assert load(folder, state).permissions.deny == ("Write", "Bash")
    assert load(folder, state, overrides=["permissions.deny=[]"]).permissions.deny == ("Bash",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("permissions: {deny: [Bash, 3]}", "permissions.deny: wants texts, got int"),
        ("permissions: {deny: {Bash: true}}", "permissions.deny: wants texts, got dict"),
        ("permissions: {deny: ['']}", "permissions.deny: wants texts, got an empty text"),
        ("permissions: [Bash]", "permissions: wants keys of its own, got list"),
        ("permissions: {deny: [Bsah]}", "permissions.deny: rule 'Bsah': names no tool; did you mean Bash?"),
        ("catalog: {deny: [1]}", "catalog.deny: wants texts, got int"),
        ("mode: [", "not valid YAML"),
        ("", "is empty"),
    ],
)
def test_denials_that_cannot_be_understood_stop_the_start(
    folder: Path, state: StateDirectory, text: str, said: str
) -> None:
    file = project_file(folder, text)

    with pytest.raises(BrokenSettings) as caught:
        load(folder, state)

    assert str(file) in caught.value.message and said in caught.value.message


def test_an_untrusted_files_other_mistakes_are_none_of_ours(folder: Path, state: StateDirectory) -> None:
    project_file(folder, {"nope": 1, "mode": ["x"], "permissions": {"allow": "???", "deny": "Bash"}})

    assert load(folder, state).permissions.deny == ("Bash",)


def test_a_trusted_file_is_held_to_every_key(folder: Path, state: StateDirectory) -> None:
    file = project_file(folder, {"nope": 1})
    trust(folder, state)

    with pytest.raises(BrokenSettings, match="nope: no such setting") as caught:
        load(folder, state)
    assert str(file) in caught.value.message


def test_where_config_names_a_file_the_projects_only_denies(folder: Path, state: StateDirectory) -> None:
    file = project_file(folder, {"mode": "acceptEdits", "permissions": {"deny": ["Bash"]}})
    trust(folder, state)
    other = folder.parent / "other.yaml"
    other.write_text("output: {max_chars: 5000}\n")

    settings = load(folder, state, config_file=other)

    assert (settings.mode, settings.output.max_chars, settings.permissions.deny) == (Mode.DEFAULT, 5000, ("Bash",))
    assert settings.notices == (f"{file}: only what it denies is in force, because --config names another file",)


def test_who_names_the_projects_file_himself_has_said_enough(folder: Path, state: StateDirectory) -> None:
    file = project_file(folder, {"mode": "acceptEdits"})

    settings = load(folder, state, config_file=file)

    assert (settings.mode, settings.notices) == (Mode.ACCEPT_EDITS, ())


def test_a_damaged_record_of_trust_is_told_and_trusts_nothing(folder: Path, state: StateDirectory) -> None:
    project_file(folder, {"mode": "acceptEdits"})
    trust(folder, state)
    TrustStore(state).path.write_text("{")

    settings = load(folder, state)

    assert settings.mode is Mode.DEFAULT
    assert "is damaged" in settings.notices[0] and "you have not trusted it" in settings.notices[1]


def test_in_the_current_directory_a_trusted_file_makes_it_the_workspace(
    folder: Path, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_file(folder, {"mode": "acceptEdits"})
    monkeypatch.chdir(folder)
    untrusted = load_settings({}, state=state)
    trust(folder, state)

    trusted = load_settings({}, state=state)

    assert (untrusted.workspace, untrusted.mode) == ((), Mode.DEFAULT)
    assert (trusted.workspace, trusted.mode) == ((folder,), Mode.ACCEPT_EDITS)


def test_in_the_home_directory_and_in_other_roots_no_file_is_looked_for(
    folder: Path, state: StateDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project_file(folder, {"permissions": {"deny": ["Bash"]}})
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    (tmp_path / "first").mkdir()

    assert load_settings({}, state=state).permissions.deny == ()
    assert load_settings({"workspace": [str(tmp_path / "first"), str(folder)]}, state=state).permissions.deny == ()


def test_relative_paths_in_a_file_lie_beside_it_and_not_where_the_process_was_started(
    folder: Path, state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = users_file(folder, {"upstreams": ["servers.json", "~/x.json", "/abs.json"], "audit": {"path": "log"}})
    (folder / "servers.json").write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", "/home/somebody")

    settings = load_settings({}, state=state)

    assert settings.upstreams == (own.parent / "servers.json", Path("/home/somebody/x.json"), Path("/abs.json"))
    assert settings.audit.path == own.parent / "log"


def test_a_token_in_a_list_of_a_file_that_others_can_read_stops_the_start(folder: Path, state: StateDirectory) -> None:
    chat = {"token": "1:very-secret-token", "chat": 1, "user": 1}
    own = users_file(folder, {"approval": {"notify": [{"desktop": True}, {"telegram": chat}]}})
    own.chmod(0o644)

    with pytest.raises(BrokenSettings, match=r"holds approval\.notify\.1\.telegram\.token and can be read by others"):
        load(folder, state)


def test_a_key_in_a_file_that_others_can_read_stops_the_start_and_is_not_shown(
    folder: Path, state: StateDirectory
) -> None:  # PR-32
    own = users_file(folder, {"agent": {"key": "sk-very-secret"}})
    own.chmod(0o644)

    with pytest.raises(BrokenSettings) as caught:
        load(folder, state)

    assert f"{own} holds agent.key and can be read by others (mode 0644)" in caught.value.message
    assert "sk-very-secret" not in f"{caught.value.message}{caught.value.suggestion}"
    own.chmod(0o600)
    assert load(folder, state).agent.key is not None
    own.write_text(yaml.safe_dump({"agent": {"key": "${env:THE_KEY}"}}))
    own.chmod(0o644)
    assert load(folder, state).agent.key is not None


def test_the_users_own_file_that_leads_nowhere_stops_the_start(folder: Path, state: StateDirectory) -> None:  # PR-31
    own = users_file(folder, {})
    own.unlink()
    own.symlink_to("dotfiles-that-are-not-there")

    with pytest.raises(BrokenSettings, match="cannot be read"):
        load(folder, state)


def test_every_setting_that_names_a_file_is_hashed_with_the_project() -> None:
    """A new setting with a path: put it into NOT_READ if it is a place, and open files through Settings.contents."""
    assert path_keys() - NOT_READ == {"upstreams", "manifests", "skills", "claude_settings", "web.ca_file"}


def test_nothing_is_written_and_no_lock_is_left_by_looking(folder: Path, state: StateDirectory) -> None:
    project_file(folder, HOSTILE)

    load(folder, state)

    assert [found.name for found in folder.iterdir()] == ["goat-mcp.yaml"]
    assert not state.path.exists()


def test_a_project_that_only_a_client_names_later_is_overlooked_and_that_is_known(
    folder: Path, state: StateDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project_file(folder, {"permissions": {"deny": ["Bash"]}})
    monkeypatch.chdir(tmp_path)

    later, known = load_settings({}, state=state), load(folder, state)

    assert (later.overlooks_project(folder), known.overlooks_project(folder)) == (True, False)
    assert not later.overlooks_project(tmp_path)
