"""A record whose end was cut off shows, if its servers have a `state.url`: they keep its head there."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.test_call import run
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.e2e
KEY = "the-key-that-all-replicas-of-it-share"


@pytest.fixture
def redis(tmp_path: Path) -> Generator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


def settings(folder: Path, url: str, key: str = KEY) -> tuple[str, ...]:
    file = folder / "goat-mcp.yaml"
    file.write_text(
        json.dumps({"state": {"url": url, "key": key}, "audit": {"path": str(folder / "kept" / "audit.jsonl")}})
    )
    file.chmod(0o600)
    return ("--config", str(file))


def called(folder: Path, redis: RedisServer) -> Path:
    """The record of two calls, which goat-mcp has kept the head of at its end."""
    work = folder / "work"
    work.mkdir()
    (folder / "kept").mkdir(mode=0o700)
    for _ in range(2):
        done = run("call", "Glob", "pattern=*", "-w", str(work), *settings(folder, redis.url), cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder / "kept" / "audit.jsonl"


def test_a_cut_tail_shows_against_the_heads_in_the_shared_state(tmp_path: Path, redis: RedisServer) -> None:
    record = called(tmp_path, redis)
    options = settings(tmp_path, redis.url)
    whole = run("audit", "verify", *options, cwd=tmp_path)
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(b"".join(lines[:-1]))

    cut = run("audit", "verify", *options, cwd=tmp_path)
    not_compared = run("audit", "verify", "--no-anchors", *options, cwd=tmp_path)

    assert (whole.returncode, "as in 2 heads" in whole.stdout) == (0, True)
    assert cut.returncode == 1
    assert "number 4 was kept: cut" in cut.stdout
    assert not_compared.returncode == 0


def test_heads_that_no_replica_has_signed_say_nothing(tmp_path: Path, redis: RedisServer) -> None:
    called(tmp_path, redis)
    (key,) = [word for word in redis.ask("KEYS", "*audit:anchors:*").split() if "audit:anchors" in word]
    redis.ask("XADD", key, "*", "head", f"9:{'a' * 64}", "mac", "b" * 64)

    found = run("audit", "verify", *settings(tmp_path, redis.url), cwd=tmp_path)

    assert (found.returncode, "as in 2 heads" in found.stdout) == (0, True)


def test_a_record_that_cannot_be_compared_is_not_called_intact(tmp_path: Path, redis: RedisServer) -> None:
    called(tmp_path, redis)
    redis.stop()

    found = run("audit", "verify", *settings(tmp_path, redis.url), cwd=tmp_path)

    assert found.returncode != 0
    assert "--no-anchors" in found.stderr
    assert "intact" not in found.stdout
