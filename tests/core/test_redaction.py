"""What is taken out of texts that are logged, recorded or told, and what is left as it is (R-SECRET-2)."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core import redaction
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redaction import (
    REDACTED,
    Redactor,
    is_likely_secret,
    redacted_error,
    redacted_upstream_error,
    secrets_among,
)

CANARY = "canary7Kx93zQ1"
BEGIN = "-----BEGIN RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"Authorization: Bearer {CANARY}", "Authorization: Bearer [redacted]"),
        (f"curl -H 'Authorization: Bearer sk-ant-{CANARY}' x", "curl -H 'Authorization: Bearer [redacted]' x"),
        (f"authorization: basic {CANARY}", "authorization: basic [redacted]"),
        (f"key sk-ant-api03-{CANARY}", "key [redacted]"),
        (f"ghp_{CANARY}{CANARY}", "[redacted]"),
        (f"github_pat_{CANARY}{CANARY}_x", "[redacted]"),
        (f"xoxb-123-{CANARY}", "[redacted]"),
        ("AKIAABCDEFGHIJKLMNOP in a log", "[redacted] in a log"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "[redacted]"),
        (f"https://user:{CANARY}@host/x", "https://[redacted]@host/x"),
        (f"postgres://{CANARY}@host/x", "postgres://[redacted]@host/x"),
        (f"GET https://h/x?api_key={CANARY}&q=cats", "GET https://h/x?api_key=[redacted]&q=cats"),
        (f"GET https://h/x?key={CANARY}", "GET https://h/x?key=[redacted]"),
        (f"GITHUB_TOKEN={CANARY} npm test", "GITHUB_TOKEN=[redacted] npm test"),
        (f"--password={CANARY}", "--password=[redacted]"),
        (f'{{"client_secret": "{CANARY}"}}', '{"client_secret": "[redacted]"}'),
        (f"{{'x-api-key': '{CANARY}'}}", "{'x-api-key': '[redacted]'}"),
        (f"password: {CANARY}", "password: [redacted]"),
        (f"{BEGIN}\n{CANARY}\n-----END RSA PRIVATE KEY-----.", f"{BEGIN}[redacted]."),
        (f"{BEGIN}\n{CANARY}\n{CANARY}", f"{BEGIN}[redacted]"),
    ],
)
def test_AU_03_what_looks_like_a_secret_is_taken_out_and_its_name_stays(text: str, left: str) -> None:
    assert Redactor().text(text) == left
    assert Redactor().text(left) == left  # once is enough


@pytest.mark.parametrize(
    "text",
    [
        "password: wants text; got int",
        "agent.key: the environment variable 'KEY' is not set",
        "output.max_chars: Input should be less than 1000000",
        "max_tokens=20000 and tokens: 12345678",
        "/home/me/token/secret.py:12: key = value of the dictionary",
        "https://example.org/a@b?page=2",
        "sk-learn is not installed",
        "Use ${env:NAME} or ${file:/run/secrets/token}",
        "the author: nobody12345 wrote it",
        "bearer of bad news",
    ],
)
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert Redactor().text(text) == text


def test_a_configured_value_is_found_however_it_is_written() -> None:
    secret = 'p"w/ \n\\öx&=1'
    redactor = Redactor([secret])

    for written in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False), quote(secret, safe="")):
        assert REDACTED in redactor.text(f"before {written} after")
        assert "&=1" not in redactor.text(written) and "%3D1" not in redactor.text(written)


def test_the_longer_of_two_values_is_taken_out_whole() -> None:
    assert Redactor(["secret-1", "secret-1-and-more"]).text("x secret-1-and-more y") == "x [redacted] y"


@pytest.mark.parametrize("value", ["", "  ", "true", "8080"])
def test_values_that_are_too_short_to_be_secrets_are_left(value: str) -> None:
    assert Redactor([value]).text("it is true that 8080 is a port") == "it is true that 8080 is a port"


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    Redactor([CANARY]).tree({text: [text, {"token": text}]})


@pytest.mark.parametrize(
    "text",
    ["a-" * 500_000, "token" * 200_000, "://" * 300_000, "-----BEGIN PRIVATE KEY-----" * 20_000, "eyJ" * 300_000],
)
def test_long_texts_end_soon(text: str) -> None:
    # A pattern that goes back over its text would take minutes here and be ended by the whole run's limit.
    Redactor(["x" * 50]).text(text)


def test_data_keeps_its_shape_and_loses_its_secrets() -> None:
    data = {"a": [1, None, True, f"Bearer {CANARY}"], "Password": "any", "n": {"api_key": "x", "key_count": 3}}

    assert Redactor().tree(data) == {
        "a": [1, None, True, "Bearer [redacted]"],
        "Password": REDACTED,
        "n": {"api_key": REDACTED, "key_count": 3},
    }


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("GITHUB_TOKEN", "short", True),
        ("MY_API_KEY", "abc", True),
        ("DB_PWD", "hunter", True),
        ("SMTP_PASS", "hunter", True),
        ("PGPASSWORD", "hunter2", True),
        ("BYPASS", "yes", False),
        ("x-api-key", "abc", True),
        ("INNOCENT", CANARY, True),
        ("PWD", "/home/me", False),
        ("SSH_KEY", "/home/me/.ssh/id_rsa", False),
        ("ROOT", "/srv/data", False),
        ("MODE", "production", False),
        ("KEYBOARD", "german", False),
        ("AUTHOR", "me", False),
    ],
)
def test_which_variables_are_taken_for_secrets(name: str, value: str, is_secret: bool) -> None:
    assert is_likely_secret(name, value) == is_secret


def test_of_the_environment_only_names_count() -> None:
    assert secrets_among({"A_TOKEN": "abcdefg", "LS_COLORS": CANARY, "PWD": str(Path.cwd())}) == ["abcdefg"]


def test_an_error_is_told_without_secrets_and_with_the_output_it_has() -> None:
    error = ToolError(
        ErrorCode.MODEL,
        f"it said: Bearer {CANARY}",
        f"Look at https://u:{CANARY}@h/.",
        facts={"said": f"token={CANARY}", "key": "agent.key"},
        output=f"output {CANARY}",
        interrupts=True,
    )

    told = redacted_error(error, Redactor())

    assert (told.message, told.suggestion) == ("it said: Bearer [redacted]", "Look at https://[redacted]@h/.")
    assert told.facts == {"said": "token=[redacted]", "key": "agent.key"}
    assert (told.code, told.output, told.interrupts) == (ErrorCode.MODEL, f"output {CANARY}", True)


def test_an_error_that_quotes_the_users_file_quotes_it_as_it_is() -> None:
    error = ToolError(ErrorCode.NO_MATCH, "the nearest text is: token = 'abc123456789'")

    assert redacted_error(error, Redactor()) is error


def test_an_upstreams_error_loses_what_only_we_gave_it() -> None:
    error = UpstreamError(-32000, f"no such user: {CANARY}", {"token": "theirs12345", "sent": [CANARY]})

    told = redacted_upstream_error(error, Redactor([CANARY]))

    assert (told.code, told.message) == (-32000, "no such user: [redacted]")
    assert told.data == {"token": "theirs12345", "sent": ["[redacted]"]}
    assert redacted_upstream_error(error, Redactor()) is error


_PARTS = (
    *("token", "API_KEY", "PassWord", "jwt", "cookie", "=", ": ", '": "', "abc123xyz789", "Bearer ", "basic  ", "x://"),
    *("@h", "sk-", "sk_live_", "GHP_", "github_pat_", "glpat-", "xoxb-", "AKIA", "ABCDEFGHIJKLMNOP", "AIza", "npm_"),
    *("hf_", "pypi-", "eyJ", ".", " ", "\n", BEGIN, "?key=", "&", "s\u017f", "\u212aey=", "a" * 40),
)


@given(st.lists(st.sampled_from(_PARTS), max_size=8).map("".join))
def test_a_text_that_is_not_looked_at_closely_has_nothing_to_take_out(text: str) -> None:
    shapes, assigned = redaction._patterns()  # pyright: ignore[reportPrivateUsage]

    looked_at = assigned.sub(redaction._keep_name, shapes.sub(redaction._keep_kind, text))  # pyright: ignore[reportPrivateUsage]

    assert Redactor().text(text) == looked_at
