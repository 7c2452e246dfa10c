"""Where settings come from, which one wins, and what is said about one that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import BrokenSettings, setting_keys


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def config(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    return file


def problem(*overrides: str, config_file: Path | None = None) -> str:
    with pytest.raises(BrokenSettings) as caught:
        load_settings({}, config_file=config_file, overrides=overrides)
    return f"{caught.value.message}\n{caught.value.suggestion}"


def test_flags_beat_environment_beats_file_beats_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = config(
        tmp_path, "mode: plan\noutput: {max_chars: 5000, structured: always}\nbash: {auto_background_after_s: 5}\n"
    )
    monkeypatch.setenv("GOAT_MCP_MODE", "dontAsk")
    monkeypatch.setenv("GOAT_MCP_OUTPUT__MAX_CHARS", "6000")

    settings = load_settings({"mode": "acceptEdits"}, config_file=file)

    assert settings.mode is Mode.ACCEPT_EDITS
    assert settings.output.max_chars == 6000
    assert settings.output.structured == "always"
    assert settings.bash.auto_background_after_s == 5
    assert settings.files.read_before_write == "strict"


def test_a_set_flag_reads_json_where_it_parses_and_text_elsewhere() -> None:
    settings = load_settings({}, overrides=['permissions.deny=["Bash"]', "mode=plan", "output.max_chars=2000"])

    assert settings.permissions.deny == ("Bash",)
    assert settings.mode is Mode.PLAN
    assert settings.output.max_chars == 2000


def test_variables_of_ours_that_are_no_settings_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without = load_settings({})
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", "/tmp/x")
    monkeypatch.setenv("GOAT_MCP_CALL", "guard.call")

    assert load_settings({}) == without


def test_the_users_own_file_is_read_without_being_named(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "goat-mcp"
    folder.mkdir(parents=True)
    (folder / "goat-mcp.yaml").write_text("mode: plan\n")

    assert load_settings({}).mode is Mode.PLAN


def test_an_unknown_key_is_named_with_the_nearest_one() -> None:
    assert "outptu.max_chars" not in problem("output.max_chrs=3000").splitlines()[0]
    assert "output.max_chrs: no such setting; did you mean output.max_chars?" in problem("output.max_chrs=3000")


def test_a_wrong_value_is_shown_with_what_is_wanted() -> None:
    said = problem("output.max_chars=3")
    assert "output.max_chars" in said and "1000" in said and "3" in said


def test_all_wrong_settings_are_named_at_once() -> None:
    said = problem("mode=fast", "output.structured=never")
    assert "mode:" in said and "output.structured:" in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mode: [", "settings.yaml:1:8: not valid YAML"),
        ("- a\n- b\n", "wants settings as `key: value`, got list"),
        ("mode: fast\n", "mode"),
        ("nope: 1\n", "nope: no such setting"),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in problem(config_file=config(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path / 'none.yaml'}: cannot be read" in problem(config_file=tmp_path / "none.yaml")


@pytest.mark.parametrize("host", ["https://mcp.example.com", "mcp.example.com/mcp", "*", "*.example.com", "a b", "x:"])
def test_a_public_host_is_a_name_as_requests_have_it(host: str) -> None:
    assert load_settings({"http": {"hosts": ["MCP.Example.com:8443"]}}).http.hosts == ("mcp.example.com:8443",)
    with pytest.raises(BrokenSettings, match=r"http\.hosts.*NAME or NAME:PORT"):
        load_settings({"http": {"hosts": [host]}})


def test_an_override_without_a_value_is_refused() -> None:
    assert "--set 'mode' is not KEY=VALUE" in problem("mode")


def test_every_key_has_levels() -> None:
    assert {"mode", "permissions.allow", "output.max_chars", "files.read_before_write"} <= set(setting_keys())


def test_a_variable_that_is_no_setting_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOAT_MCP_PERMISSIONS__DENI", '["Bash"]')
    assert "GOAT_MCP_PERMISSIONS__DENI: no such setting; did you mean permissions.deny?" in problem()


def test_a_variable_may_hold_one_value_a_list_or_an_object(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOAT_MCP_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GOAT_MCP_PERMISSIONS__DENY", "Bash")
    monkeypatch.setenv("GOAT_MCP_PERMISSIONS__ASK", '["Write", "Edit"]')
    monkeypatch.setenv("GOAT_MCP_OUTPUT", '{"max_chars": 7000}')

    settings = load_settings({})

    assert settings.workspace == (tmp_path,)
    assert (settings.permissions.deny, settings.permissions.ask) == (("Bash",), ("Write", "Edit"))
    assert settings.output.max_chars == 7000


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A host with a field for it sets the variable also where nobody has filled in the field."""
    monkeypatch.setenv("GOAT_MCP_UPSTREAMS", "")
    monkeypatch.setenv("GOAT_MCP_OUTPUT__MAX_CHARS", "")

    settings = load_settings({}, config_file=config(tmp_path, "output: {max_chars: 7000}\n"))

    assert (settings.upstreams, settings.output.max_chars) == ((), 7000)
    monkeypatch.setenv("GOAT_MCP_UPSTREAM", "")
    assert "GOAT_MCP_UPSTREAM: no such setting" in problem()


def test_a_key_below_a_value_is_refused() -> None:
    assert "--set output.max_chars: output is set to 5 already" in problem("output=5", "output.max_chars=3")


def test_an_empty_text_names_no_directory() -> None:
    with pytest.raises(BrokenSettings, match="empty text names nothing"):
        load_settings({"workspace": [""]})


def test_a_key_may_have_more_than_two_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOAT_MCP_WEB__SEARCH__MAX_RESULTS", "5")
    monkeypatch.setenv("GOAT_MCP_WEB", '{"search": {"provider": "brave"}}')

    settings = load_settings({}, overrides=["web.search.base_url=http://127.0.0.1:8080/"])

    assert "web.search.max_results" in setting_keys()
    assert (settings.web.search.provider, settings.web.search.max_results) == ("brave", 5)
    assert settings.web.search.base_url == "http://127.0.0.1:8080"
    assert "web.search.max_resluts: no such setting; did you mean web.search.max_results?" in problem(
        "web.search.max_resluts=5"
    )


@pytest.mark.parametrize("key", ["sekrit-1", "1234567"])
def test_a_secret_is_kept_as_text_and_shown_nowhere(key: str) -> None:
    settings = load_settings({}, overrides=[f"web.search.key={key}"])

    assert settings.web.search.key.get_secret_value() == key
    assert key not in repr(settings)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("web.search.key", '["sekrit-1"]'),
        ("web.search.key", '{"a": "sekrit-1"}'),
        ("web.search.base_url", "https://me:sekrit-1@search.example"),
    ],
)
def test_a_wrong_secret_is_not_shown(key: str, value: str) -> None:
    said = problem(f"{key}={value}")

    assert key in said
    assert "sekrit-1" not in said


@pytest.mark.parametrize(
    "url", ["search.example", "ftp://search.example", "https://", "https://[::1", "https://a:99999", "https://a?x=1"]
)
def test_a_base_url_is_a_whole_http_address(url: str) -> None:
    assert "wants http(s)://HOST[:PORT][/PATH]" in problem(f"web.search.base_url={url}")


def own_upstreams(tmp_path: Path) -> Path:
    folder = tmp_path / "config" / "goat-mcp"
    folder.mkdir(parents=True)
    file = folder / "upstreams.json"
    file.write_text('{"mcpServers": {}}')
    return file


def test_the_users_upstreams_count_where_nothing_names_others(tmp_path: Path) -> None:
    file = own_upstreams(tmp_path)

    assert load_settings({}).upstreams == (file,)
    assert load_settings({"upstreams": ["other.json"]}).upstreams == (Path("other.json"),)
    assert load_settings({}, config_file=config(tmp_path, "mode: plan\n")).upstreams == ()
    assert load_settings({}, overrides=["upstreams=[]"]).upstreams == ()


def test_users_upstreams_that_others_can_write_are_refused(tmp_path: Path) -> None:
    own_upstreams(tmp_path).chmod(0o666)

    assert "upstreams.json can be written by others (mode 0666)" in problem()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mode: plam\n", "got 'plam'; did you mean plan?"),
        ("permisions: {allow: [Bash]}\n", "permisions: no such setting; did you mean permissions?"),
        ("output: {timeout_s: 5}\n", "output.timeout_s: no such setting; did you mean "),
        ("output: {max_char: 5}\n", "output.max_char: no such setting; did you mean output.max_chars?"),
    ],
)
def test_what_is_nearly_right_is_suggested(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)

    with pytest.raises(BrokenSettings) as broken:
        load_settings({}, config_file=file)

    assert said in broken.value.message
