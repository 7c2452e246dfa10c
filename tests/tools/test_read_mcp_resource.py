"""ReadMcpResource: what a model sees of a resource's contents, and of a URI that does not exist."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.resources import ServerResources
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles
from goat_mcp.tools.read_mcp_resource import ReadMcpResource
from tests.tools.mcp_resources_double import FakeResources

pytestmark = pytest.mark.anyio

LISTED = ServerResources(
    "docs",
    tuple({"uri": f"docs://guide/{name}.md", "name": name} for name in ("intro", "install", "usage")),
    ({"uriTemplate": "docs://page/{number}"},),
)
NO_SUCH = UpstreamError(-32002, "Resource not found")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def failing(uri: str, error: Exception = NO_SUCH, *listed: ServerResources) -> FakeResources:
    return FakeResources(listed or [LISTED], {uri: error})


async def reading(fake: FakeResources, folder: Path, uri: str, **ctx: Any) -> ToolResult:
    tool = ReadMcpResource(lambda rights: fake, SpillFiles(StateDirectory(folder / "state")))
    return await tool.execute(tool.validate({"server": "docs", "uri": uri}), ToolContext(call_id="t", **ctx))


async def refused(fake: FakeResources, folder: Path, uri: str, **ctx: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await reading(fake, folder, uri, **ctx)
    return caught.value


async def test_a_text_comes_as_it_is(tmp_path: Path) -> None:
    fake = FakeResources((), {"x://a": [{"uri": "x://a", "mimeType": "text/plain", "text": "one\r\n\ttwo\x1b[0m"}]})

    result = await reading(fake, tmp_path, "x://a")

    assert result.content == (text_block("one\r\n\ttwo\x1b[0m"),)
    assert result.facts == {
        "server": "docs",
        "uri": "x://a",
        "contents": [{"uri": "x://a", "mime_type": "text/plain", "kind": "text", "chars": 13}],
    }


async def test_a_blob_is_stored_and_its_path_size_and_type_are_named(tmp_path: Path) -> None:
    data = b"PK\x03\x04" + bytes(range(256)) * 10
    fake = FakeResources((), {"x://a": [{"uri": "x://a", "mimeType": "application/zip", "blob": b64(data)}]})

    result = await reading(fake, tmp_path, "x://a")

    (path,) = (tmp_path / "state" / "spill").rglob("mcp-resource-*.zip")
    assert result.text == f"x://a: application/zip, 2.6 KB (2,564 bytes), stored in {path}"
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_clients_own_meta_passes_on_and_time_is_left_for_the_answer(tmp_path: Path) -> None:
    fake = FakeResources((), {"x://a": [{"uri": "x://a", "text": ""}]})

    result = await reading(fake, tmp_path, "x://a", meta={"traceparent": "00-1"})

    assert result.text == "(empty)"
    assert fake.metas == [{"traceparent": "00-1"}]
    assert 35 < fake.waits_s[0] <= 40


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        ("docs://guide/intor.md", "Did you mean docs://guide/intro.md"),
        ("usage.md", "Did you mean docs://guide/usage.md?"),
        ("DOCS://Guide/Install.md", "Did you mean docs://guide/install.md"),
        ("zzz", "Its templates: docs://page/{number}"),
    ],
)
async def test_an_unknown_uri_is_answered_with_the_nearest_ones(tmp_path: Path, asked: str, suggested: str) -> None:
    error = await refused(failing(asked), tmp_path, asked)

    assert (error.code, error.message) == (
        ErrorCode.NOT_FOUND,
        f"upstream docs has no resource {asked}: Resource not found",
    )
    assert error.suggestion.startswith(suggested)
    assert error.suggestion.endswith("Its templates: docs://page/{number}")


@pytest.mark.parametrize(
    ("listed", "suggested"),
    [
        (ServerResources("docs", ({"uri": "a://completely-other"},)), "ListMcpResources shows what there is."),
        (ServerResources("docs"), "It lists nothing to read."),
    ],
)
async def test_without_a_near_one_the_next_step_is_still_named(
    tmp_path: Path, listed: ServerResources, suggested: str
) -> None:
    error = await refused(failing("zzz", NO_SUCH, listed), tmp_path, "zzz")

    assert error.suggestion == suggested


async def test_another_error_of_the_server_is_told_with_its_code(tmp_path: Path) -> None:
    broken = UpstreamError(-32603, "database\nis\x1b[31m locked")

    error = await refused(failing("docs://guide/intor.md", broken), tmp_path, "docs://guide/intor.md")
    listed = await refused(failing("docs://guide/intro.md", broken), tmp_path, "docs://guide/intro.md")

    assert error.code is listed.code is ErrorCode.UPSTREAM
    assert error.message == (
        "upstream docs answered with error -32603 for docs://guide/intor.md: database\\nis\\x1b[31m locked"
    )
    assert "Did you mean docs://guide/intro.md" in error.suggestion
    assert listed.message == (
        "upstream docs lists docs://guide/intro.md but answered with error -32603: database\\nis\\x1b[31m locked"
    )


async def test_a_server_that_cannot_be_listed_either_still_says_what_it_refused(tmp_path: Path) -> None:
    error = await refused(failing("x://a", NO_SUCH, ServerResources("other")), tmp_path, "x://a")

    assert error.message == "upstream docs has no resource x://a: Resource not found"


async def test_a_uri_with_hidden_characters_is_found_by_what_the_list_shows_of_it(tmp_path: Path) -> None:
    real = "x://a\u200bb\tc"
    shown = "x://a\\u200bb\\tc"
    fake = FakeResources([ServerResources("docs", ({"uri": real},))], {shown: NO_SUCH, real: [{"text": "here"}]})

    result = await reading(fake, tmp_path, shown)

    assert result.text == "here"
    assert fake.asked == [("read", "docs", shown), ("list", "docs"), ("read", "docs", real)]


async def test_comparing_with_thousands_of_long_uris_is_bounded(tmp_path: Path) -> None:
    many = tuple({"uri": "x://" + "ab" * 4_000 + str(number)} for number in range(10_000))

    error = await refused(
        failing("x://" + "ab" * 4_000, NO_SUCH, ServerResources("docs", many)), tmp_path, "x://" + "ab" * 4_000
    )

    assert error.code is ErrorCode.NOT_FOUND
    assert len(error.message) < 3_000 and len(error.suggestion) < 7_000


async def test_a_lone_surrogate_in_a_text_does_not_cost_the_answer(tmp_path: Path) -> None:
    fake = FakeResources((), {"x://a": [{"uri": "x://a", "text": "half \ud83d"}]})

    result = await reading(fake, tmp_path, "x://a")

    assert result.text == "half \\ud83d"
    json.dumps(result.wire(), ensure_ascii=False).encode()


@pytest.mark.parametrize("arguments", [{"server": "docs"}, {"uri": "x://a"}, {}])
def test_both_fields_are_wanted(tmp_path: Path, arguments: Mapping[str, Any]) -> None:
    tool = ReadMcpResource(lambda rights: FakeResources(), SpillFiles(StateDirectory(tmp_path / "state")))

    with pytest.raises(ToolError) as caught:
        tool.validate(arguments)

    assert caught.value.code is ErrorCode.INPUT


async def test_a_full_disk_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpillFiles, "create", full)
    fake = FakeResources((), {"x://a": [{"uri": "x://a", "blob": b64(b"data")}]})

    error = await refused(fake, tmp_path, "x://a")

    assert error.code is ErrorCode.IO
    assert error.message == "a file for the contents of x://a cannot be written: No space left on device"
