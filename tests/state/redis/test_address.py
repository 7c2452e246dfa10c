"""What `state.url` may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.options import StateOptions
from goat_mcp.state.redis.address import RedisAddress, parsed_address
from goat_mcp.state.redis.shared_state import SharedState
from goat_mcp.state.secret_references import SecretReferences


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://localhost", RedisAddress("single", False, (("localhost", 6379),))),
        ("rediss://h:1/3", RedisAddress("single", True, (("h", 1),), database=3)),
        ("redis://:p%40ss@h", RedisAddress("single", False, (("h", 6379),), password="p@ss")),
        ("redis://me:a:b@[::1]:7", RedisAddress("single", False, (("::1", 7),), "me", "a:b")),
        ("redis+cluster://a:1,b:2", RedisAddress("cluster", False, (("a", 1), ("b", 2)))),
        ("rediss+sentinel://a,b/main", RedisAddress("sentinel", True, (("a", 26379), ("b", 26379)), name="main")),
        (
            "redis+sentinel://a/main/2?sentinel_password=p%2Bq",
            RedisAddress("sentinel", False, (("a", 26379),), database=2, name="main", sentinel_password="p+q"),
        ),
        ("rediss://h?ca=/etc/ca.pem", RedisAddress("single", True, (("h", 6379),), ca="/etc/ca.pem")),
    ],
)
def test_an_address_is_read(url: str, address: RedisAddress) -> None:
    assert parsed_address(url) == address


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://h", "its scheme is none of redis, rediss, redis+cluster"),
        ("localhost:6379", "its scheme"),
        ("redis://", "a host is missing"),
        ("redis://user:hunter2@", "a host is missing"),
        ("redis://h:99999", "a port is a number"),
        ("redis://h/main", "the number of a database"),
        ("redis://a,b", "several hosts"),
        ("redis+sentinel://a", "end it with /NAME"),
        ("redis+cluster://a/2", "only the database 0"),
        ("redis://:hunter2?x@h", "%3F"),
        ("redis://:hunter2/x@h", "%2F"),
        ("redis://me@h", "a user has a password"),
        ("redis://h?ca=/x", "ca, cert and key are for rediss"),
        ("rediss://h?password=hunter2", "it takes ca, cert, key"),
        ("rediss://h?key=/x", "cert and key are named together"),
    ],
)
def test_what_is_wrong_is_said_without_the_password(url: str, why: str) -> None:
    with pytest.raises(ToolError) as refused:
        parsed_address(url)

    assert refused.value.code == ErrorCode.CONFIG
    assert why in refused.value.message
    assert "hunter2" not in f"{refused.value.message} {refused.value.suggestion}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://me:hunter2@h/2", "redis://h:6379/2"),
        ("rediss://[::1]", "rediss://[::1]:6379"),
        ("redis+sentinel://a,b:1/main", "redis+sentinel://a:26379,b:1/main"),
    ],
)
def test_an_address_is_shown_without_user_and_password(url: str, shown: str) -> None:
    address = parsed_address(url)

    assert address.shown == shown
    assert "hunter2" not in repr(address)


KEY = "k" * 32


def shared(tmp_path: Path, url: str, redactor: Redactor, **environ: str) -> SharedState:
    references = SecretReferences(environ, redactor, StateDirectory(tmp_path / "state"))
    options = StateOptions.model_validate({"url": url, "key": KEY})
    found = SharedState.of(options, references)
    assert found is not None
    return found


def test_references_stand_for_plain_passwords_and_are_never_shown(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("p@ss/word-1\n")
    password.chmod(0o600)
    redactor = Redactor()

    address = shared(tmp_path, f"redis://me:${{file:{password}}}@${{HOST}}/1", redactor, HOST="h:1").connection.address

    assert address == RedisAddress("single", False, (("h", 1),), "me", "p@ss/word-1", 1)
    assert redactor.text("it is p@ss/word-1") == "it is [redacted]"


def test_a_reference_may_stand_for_the_whole_url(tmp_path: Path) -> None:
    redactor = Redactor()

    found = shared(tmp_path, "${REDIS}", redactor, REDIS="redis://:s3cret-word@h")

    assert found.connection.address.password == "s3cret-word"
    assert "s3cret-word" not in redactor.text("tried s3cret-word")


def test_a_reference_without_a_value_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"state\.url: \$\{REDIS\}: the environment variable 'REDIS' is not set"):
        shared(tmp_path, "${REDIS}", Redactor())
