"""docs/configuration.md says what is in force and where the limits are: its example and its table are held to that."""

from __future__ import annotations

import re
from pathlib import Path
from sqlite3 import Connection

import anyio.to_thread
import pytest

from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.gateway.status.shared_state_check import shared_state_examined
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import path_keys
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.redis.address import RedisAddress, parsed_address
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.redis.encrypted_text import EncryptedText
from goat_mcp.state.redis.shared_state import SharedState
from goat_mcp.state.redis.shared_table import SharedTable
from goat_mcp.state.redis.stores import RedisConfigStore, RedisTodoStore, RedisTokens
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.trust.project import whole_project
from goat_mcp.state.trust.settings_file import find_project_file
from goat_mcp.state.trust.store import TrustStore
from tests.docs.test_documents import ROOT, blocks
from tests.redis_server import redis_server

pytestmark = pytest.mark.anyio

DOCUMENT = ROOT / "docs" / "configuration.md"
UNITS = {"MiB": 1024 * 1024}


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_the_projects_file_counts_as_its_comments_say(tmp_path: Path) -> None:
    block, _ = blocks(DOCUMENT, "yaml")
    project, state = tmp_path / "project", StateDirectory(tmp_path / "state")
    project.mkdir()
    (project / "goat-mcp.yaml").write_text(block)

    untrusted = load_settings({"workspace": [str(project)]}, state=state)
    found = find_project_file(project)
    assert found is not None
    TrustStore(state).trust(found.path, whole_project(found, path_keys()).sha256)
    trusted = load_settings({"workspace": [str(project)]}, state=state)

    assert (untrusted.permissions.deny, untrusted.mode) == (("WebFetch",), Mode.DEFAULT)
    assert (trusted.permissions.deny, trusted.mode) == (("WebFetch",), Mode.ACCEPT_EDITS)


def test_the_settings_of_shared_state_name_the_redis_that_they_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, block = blocks(DOCUMENT, "yaml")
    file = tmp_path / "goat-mcp.yaml"
    file.write_text(block)
    environ = {"REDIS_PASSWORD": "p@ss/word", "GOAT_STATE_KEY": "k" * 32}

    shared = SharedState.of(load_settings({}, config_file=file).state, SecretReferences(environ))

    assert shared is not None
    assert shared.keys == ["k" * 32]
    host = ("redis.example.com", 6379)
    assert shared.connection.address == RedisAddress("single", True, (host,), "goat", "p@ss/word")


async def test_the_user_of_the_page_may_do_what_stores_and_events_need(tmp_path: Path) -> None:
    (user,) = re.findall(r"`user (goat on .*?)`", DOCUMENT.read_text())
    words = ("--user", *user.replace("PASSWORD", "secret").split(), "--user", "default", "off")
    with redis_server(tmp_path, *words) as server:
        redis = RedisConnection(parsed_address(server.url.replace("://", "://goat:secret@")), "goat-mcp")
        tokens, settings = RedisTokens(redis, 60), RedisConfigStore(redis)

        async with redis.listening("events") as next_message:
            await redis.publish("events", "hello")
            assert await next_message() == ("events", "hello")
        await tokens.issue("t")
        assert await tokens.use("t")
        await settings.write("s", "log_level", "debug")
        assert await settings.read("s") == {"log_level": "debug"}
        assert await RedisTodoStore(redis).replace("o", []) == []
        assert await shared_state_examined(redis) == []
        rows = SharedTable(redis, "things", ("CREATE TABLE things (name TEXT PRIMARY KEY)",), EncryptedText(["k" * 40]))

        def insert(copy: Connection) -> None:
            copy.execute("INSERT INTO things VALUES ('a')")

        await anyio.to_thread.run_sync(rows.write_here, insert)
        rows.close()
        await redis.close()


def test_the_limits_are_the_defaults() -> None:
    limits = load_settings({}).limits
    written = dict(re.findall(r"^\| `limits\.(\w+)` \| ([\w. ]+?) \|", DOCUMENT.read_text(), re.MULTILINE))

    values = {key: float(text.split()[0]) * UNITS.get(text.split()[-1], 1) for key, text in written.items()}

    assert values == {key: float(value) for key, value in limits.model_dump().items()}
