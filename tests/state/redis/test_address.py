"""What `state.url` may say."""

from __future__ import annotations

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis.address import RedisAddress, parsed_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://localhost", RedisAddress("single", False, (("localhost", 6379),))),
        ("rediss://h:1/3", RedisAddress("single", True, (("h", 1),), database=3)),
        ("redis://:p%40ss@h", RedisAddress("single", False, (("h", 6379),), password="p@ss")),
        ("redis://me:a:b@[::1]:7", RedisAddress("single", False, (("::1", 7),), "me", "a:b")),
        ("redis+cluster://a:1,b:2", RedisAddress("cluster", False, (("a", 1), ("b", 2)))),
        ("rediss+sentinel://a,b/main", RedisAddress("sentinel", True, (("a", 26379), ("b", 26379)), name="main")),
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
