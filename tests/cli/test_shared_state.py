"""State in Redis, as `doctor`, `status` and `Config` show it: where it is, whether it answers, and never a secret."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_call import run
from tests.free_port import free_port
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.e2e
PASSWORD = "hunter2-of-redis"
KEY = "the-key-that-all-replicas-of-it-share"


@pytest.fixture
def redis(tmp_path: Path) -> Generator[RedisServer]:
    with redis_server(tmp_path, "--requirepass", PASSWORD, "--maxmemory-policy", "allkeys-lru") as server:
        yield server


def settings(folder: Path, url: str, **more: Any) -> tuple[str, ...]:
    file = folder / "goat-mcp.yaml"
    file.write_text(json.dumps({"state": {"url": url, "key": KEY, **more}}))
    file.chmod(0o600)
    return ("--config", str(file), "--workspace", str(folder))


def findings(folder: Path, url: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = run("doctor", "--json", *settings(folder, url), cwd=folder)
    assert PASSWORD not in done.stdout + done.stderr
    document = json.loads(done.stdout)
    return done.returncode, {one["id"]: one for one in document["findings"] if one["severity"] != "info"}


def test_doctor_asks_the_redis_and_says_what_may_be_lost_there(tmp_path: Path, redis: RedisServer) -> None:
    code, found = findings(tmp_path, redis.url.replace("redis://", f"redis://:{PASSWORD}@"))

    assert code == 0
    assert list(found) == ["state_evicted"]
    assert "allkeys-lru" in found["state_evicted"]["detail"]


def test_doctor_names_a_redis_that_does_not_answer_or_refuses_the_password(tmp_path: Path, redis: RedisServer) -> None:
    code, found = findings(tmp_path, f"redis://:{PASSWORD}@127.0.0.1:{free_port()}")
    assert (code, list(found)) == (4, ["state_unreachable"])

    code, found = findings(tmp_path, redis.url.replace("redis://", "redis://:wrong-password@"))
    assert (code, list(found)) == (4, ["state_unreachable"])
    assert "refuses the user or the password" in found["state_unreachable"]["detail"]
    assert "wrong-password" not in str(found)


def test_status_and_config_say_where_the_state_is_without_its_secrets(tmp_path: Path) -> None:
    words = settings(tmp_path, f"redis://me:{PASSWORD}@redis.invalid/2", previous_key=f"{KEY}-before")

    shown = run("status", *words, cwd=tmp_path)
    config = [
        run("call", "Config", f"setting=state.{name}", *words, cwd=tmp_path) for name in ("url", "key", "previous_key")
    ]

    assert "state: redis://redis.invalid:6379/2 (shared with other servers)" in shown.stdout
    for done in (shown, *config):
        assert PASSWORD not in done.stdout + done.stderr
        assert KEY not in done.stdout + done.stderr
    assert all("set" in done.stdout for done in config)


def test_a_password_in_a_settings_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    words = settings(tmp_path, f"redis://:{PASSWORD}@h", key="${KEY}")
    (tmp_path / "goat-mcp.yaml").chmod(0o644)

    done = run("list", *words, cwd=tmp_path)

    assert "holds state.url and can be read by others" in done.stderr
    assert PASSWORD not in done.stderr


def test_a_wrong_url_or_key_is_said_with_what_to_do_and_without_the_secret(tmp_path: Path) -> None:
    for url, key, why in (
        (f"http://:{PASSWORD}@h", KEY, "its scheme is none of redis"),
        ("redis://h", "short-key", "state.key has 9 characters; it takes 32 or more"),
        ("redis://h", "", "state.url is set without state.key"),
        ("redis://:${NO_SUCH_VARIABLE}@h", KEY, "the environment variable 'NO_SUCH_VARIABLE' is not set"),
    ):
        done = run("list", *settings(tmp_path, url, key=key), cwd=tmp_path)

        assert done.returncode != 0
        assert why in done.stderr
        assert PASSWORD not in done.stderr
        assert "short-key" not in done.stderr


def test_state_on_one_machine_is_shown_as_its_directory(tmp_path: Path) -> None:
    done = run("status", "--json", "--workspace", str(tmp_path), cwd=tmp_path)

    document = json.loads(done.stdout)
    (one,) = document["running"] or [document["configured"]] if "configured" in document else [document]
    assert one["state"]["is_shared"] is False
