"""What Config may show of the settings, what it may change, and what it says of the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import Settings, setting_keys
from goat_mcp.settings.view import ALIASES, SETTABLE, ConfigView

VIEW = ConfigView(Settings())


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def view(**settings: Any) -> ConfigView:
    return ConfigView(Settings.model_validate(settings))


def refused(code: ErrorCode, act: Any, *arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        act(*arguments)
    assert caught.value.code is code
    return caught.value


@pytest.mark.parametrize("key", sorted(SETTABLE))
def test_each_settable_key_is_a_setting(key: str) -> None:
    assert key in setting_keys()


@pytest.mark.parametrize("key", setting_keys())
def test_every_setting_can_be_read_and_none_but_the_listed_ones_be_changed(key: str) -> None:
    value = VIEW.value(VIEW.key_of(key))

    if key in SETTABLE:
        assert VIEW.check(key, value) == value
        return
    error = refused(ErrorCode.PERMISSION, VIEW.check, key, value)
    assert f"--set {key}=VALUE" in error.suggestion


@pytest.mark.parametrize(
    "key", ["mode", "approval", "permissions.allow", "permissions.deny", "workspace", "upstreams", "audit.path"]
)
def test_cfg_001_what_protects_the_user_is_never_a_sessions_to_change(key: str) -> None:
    error = refused(ErrorCode.PERMISSION, VIEW.check, key, "bypassPermissions")

    assert error.message == f"{key} is not for a session to change: only the user decides what tools may do, reach " + (
        "and cost"
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("output.max_char", "output.max_chars"),
        ("max_chars", "output.max_chars"),
        ("output", "output.max_chars, output.structured"),
        ("nope.key", "Settings a session may change: agent.model, bash.auto"),
    ],
)
def test_cfg_001_an_unknown_setting_is_answered_with_near_ones_or_those_there_are(name: str, near: str) -> None:
    error = refused(ErrorCode.SETTING, VIEW.key_of, name)

    assert error.message == f"no setting {name!r}"
    assert near in error.suggestion


def test_an_endless_name_is_not_repeated() -> None:
    assert len(refused(ErrorCode.SETTING, VIEW.key_of, "x" * 100_000).message) < 200


@pytest.mark.parametrize(("alias", "key"), ALIASES.items())
def test_goas_names_stand_for_ours(alias: str, key: str) -> None:
    if key in setting_keys():
        assert VIEW.key_of(alias) == key
    else:
        refused(ErrorCode.SETTING, VIEW.key_of, alias)


def test_of_a_secret_only_whether_it_is_set_is_shown() -> None:
    assert VIEW.value("web.search.key") == "unset"
    assert view(web={"search": {"key": "canary"}}).value("web.search.key") == "set"


def test_of_a_declared_tools_token_a_reference_is_shown_and_nothing_else() -> None:  # R-SECRET-1
    tools = {
        "telegram": {"token": "1:literal-secret", "chats": [1]},
        "slack": {"token": "${env:SLACK_BOT_TOKEN}"},
        "other": {"api_key": "${env:X:-literal-secret}", "password": ""},
    }

    assert ConfigView(Settings.model_validate({"tools": tools})).value("tools") == {
        "telegram": {"token": "set", "chats": [1]},
        "slack": {"token": "${env:SLACK_BOT_TOKEN}"},
        "other": {"api_key": "set", "password": ""},
    }


def test_of_a_secret_in_a_list_a_reference_is_shown_and_nothing_else() -> None:  # R-SECRET-1
    slack = {"token": "literal-secret", "app_token": "${secret:APP}", "channel": "C01", "user": "U01"}

    shown = view(approval={"notify": [{"slack": slack}, {"desktop": True}]}).value("approval.notify")

    assert shown == [{"slack": {**slack, "token": "set"}}, {"desktop": True}]


def test_who_logs_in_at_a_url_is_not_shown() -> None:
    url = "https://user:canary@example.org/x"

    shown = view(upstreams=[url], files={"legacy_encoding": url})

    assert shown.value("files.legacy_encoding") == "https://***@example.org/x"
    assert "canary" not in str(shown.value("upstreams"))


@pytest.mark.parametrize(
    ("key", "given", "checked"),
    [
        ("output.max_chars", 5000, 5000),
        ("output.max_chars", 5000.0, 5000),
        ("output.max_chars", " +5000", 5000),
        ("bash.auto_background_after_s", 30, 30),
        ("bash.auto_background_after_s", 2.5, 2.5),
        ("bash.auto_background_after_s", "2.5", 2.5),
        ("edit.allow_fuzz", False, False),
        ("edit.allow_fuzz", "False", False),
        ("log_level", "debug", "debug"),
    ],
)
def test_cfg_001_types_come_back_as_they_are(key: str, given: Any, checked: Any) -> None:
    found = VIEW.check(key, given)

    assert (found, type(found)) == (checked, type(checked))


@pytest.mark.parametrize(
    ("key", "given", "said"),
    [
        ("output.max_chars", True, "value: output.max_chars wants a whole number; got bool true"),
        ("output.max_chars", 3, "value: output.max_chars wants at least 1000; got int 3"),
        ("output.max_chars", "lots", 'value: output.max_chars wants a whole number; got str "lots"'),
        ("output.max_chars", "[" * 100_000, "wants a whole number"),
        ("edit.allow_fuzz", 1, "value: edit.allow_fuzz wants true or false; got int 1"),
        ("edit.allow_fuzz", "[true]", "wants true or false"),
        ("log_level", "loud", "value: log_level wants 'debug', 'info', 'warning' or 'error'; got str \"loud\""),
        ("bash.auto_background_after_s", "nan", "wants a number"),
    ],
)
def test_a_wrong_value_is_an_error_that_says_what_is_wanted(key: str, given: Any, said: str) -> None:
    error = refused(ErrorCode.INPUT, VIEW.check, key, given)

    assert said in error.message
    assert len(error.message) < 300


@pytest.mark.parametrize("key", sorted(SETTABLE))
def test_what_the_user_has_set_beside_a_key_is_no_obstacle(key: str, tmp_path: Path) -> None:
    configured = view(
        workspace=[tmp_path],
        mode="plan",
        permissions={"deny": ["Bash"]},
        web={"allow_hosts": ["localhost:1"], "search": {"key": "k", "provider": "brave"}},
        agent={"base_url": "http://127.0.0.1:1/v1", "key": "k"},
    )

    assert configured.check(key, configured.value(key)) == configured.value(key)


@pytest.mark.parametrize("key", sorted(SETTABLE))
def test_each_settable_key_is_on_configs_page(key: str) -> None:
    import goat_mcp.tools.docs

    page = Path(goat_mcp.tools.docs.__file__).parent / "Config.md"

    assert f"`{key}`" in page.read_text()


def test_a_session_cannot_make_the_log_quieter() -> None:
    error = refused(ErrorCode.INPUT, VIEW.check, "log_level", "error")

    assert error.suggestion == "Use one of debug, info, warning."


def test_it_is_known_where_a_setting_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("output: {max_chars: 5000}\nedit: {allow_fuzz: false}\nmode: plan\nlog_level: error\n")
    monkeypatch.setenv("GOAT_MCP_OUTPUT", '{"max_chars": 6000}')
    monkeypatch.setenv("GOAT_MCP_MODE", "default")

    settings = load_settings(
        {"mode": "dontAsk", "files": {"write_eol": "exact"}}, config_file=file, overrides=["log_level=debug"]
    )

    keys = ["output.max_chars", "edit.allow_fuzz", "mode", "files.write_eol", "log_level", "search.glob_limit"]
    assert {key: ConfigView(settings).source(key) for key in keys} == {
        "output.max_chars": "environment",
        "edit.allow_fuzz": "file",
        "mode": "flag",
        "files.write_eol": "flag",
        "log_level": "flag",
        "search.glob_limit": "default",
    }
