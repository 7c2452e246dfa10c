"""The user's own skills (SEP-2640) as clients see them: what is served of a folder, to whom, and what never is."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation

from goat_mcp.core.skill_uris import MAX_BYTES
from goat_mcp.gateway.gateway import Gateway
from tests.server.handlers.test_resources import connected, gateway
from tests.skill_client import ask, children, skill, skill_uris, skills, text

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")]
both_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
NOTES = "---\nname: notes\ndescription: How notes are written\nversion: 1.10\nsince: 2026-01-01\non: yes\n---\nWrite.\n"


def folder_of(tmp_path: Path, name: str = "notes", content: str = NOTES) -> Path:
    place = tmp_path / "skills" / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_bytes(content.encode())
    return place


def served(tmp_path: Path, **settings: Any) -> Gateway:
    (tmp_path / "work").mkdir(exist_ok=True)
    return gateway(tmp_path / "work", skills=[str(tmp_path / "skills")], **settings)


@asynccontextmanager
async def client_of(tmp_path: Path, mode: str = "2026-07-28", **settings: Any) -> AsyncGenerator[Client]:
    async with connected(served(tmp_path, **settings), mode) as client:
        yield client


async def code_of(client: Client, uri: str, method: str = "resources/read") -> int:
    with pytest.raises(MCPError) as refused:
        await (client.read_resource(uri) if method == "resources/read" else ask(client, method, uri=uri))
    return refused.value.error.code


@both_eras
async def test_a_folder_is_a_skill_with_all_its_files(tmp_path: Path, mode: str) -> None:
    place = folder_of(tmp_path)
    (place / "sub dir").mkdir()
    (place / "sub dir" / "größe#1.md").write_bytes("groß\r\n".encode())
    (place / "image.png").write_bytes(b"\x89PNG\0\xff")

    async with client_of(tmp_path, mode) as client:
        (entry,) = await skills(client)
        got = await skill(client, entry["uri"])
        (root,) = [one for one in (await client.list_resources()).resources if str(one.uri).startswith("skill:")]
        read = await text(client, entry["uri"])
        odd = "skill://notes/sub%20dir/gr%C3%B6%C3%9Fe%231.md"
        of_odd = await text(client, odd)
        image = (await client.read_resource("skill://notes/image.png")).contents[0].model_dump(by_alias=True)
        listed = await children(client, "skill://notes")
        below = await children(client, "skill://notes/sub%20dir")

    fields = {
        "name": "notes",
        "description": "How notes are written",
        "version": 1.1,
        "since": "2026-01-01",
        "on": "yes",
    }
    assert entry == got
    assert (entry["uri"], entry["frontmatter"]) == ("skill://notes/SKILL.md", fields)
    bodies = {one["uri"]: (one["digest"], one["size"]) for one in entry["resources"]}
    assert bodies == {
        uri: (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
        for uri, data in {
            "skill://notes/SKILL.md": NOTES.encode(),
            "skill://notes/image.png": b"\x89PNG\0\xff",
            odd: "groß\r\n".encode(),
        }.items()
    }
    assert (root.name, root.description, root.mime_type) == ("notes", "How notes are written", "text/markdown")
    assert (read, of_odd) == (NOTES, "groß\r\n")
    assert (image["blob"], image["mimeType"]) == (base64.b64encode(b"\x89PNG\0\xff").decode(), "image/png")
    assert listed == [
        ("skill://notes/SKILL.md", "text/markdown"),
        ("skill://notes/image.png", "image/png"),
        ("skill://notes/sub%20dir", "inode/directory"),
    ]
    assert below == [(odd, "text/markdown")]


async def test_an_edit_counts_at_once(tmp_path: Path) -> None:
    place = folder_of(tmp_path)

    async with client_of(tmp_path) as client:
        (before,) = await skills(client)
        (place / "SKILL.md").write_text(NOTES.replace("Write.", "Do not."))
        (place / "more.md").write_text("more")
        (after,) = await skills(client)
        read = await text(client, "skill://notes/more.md")
        (place / "SKILL.md").write_text(NOTES.replace("name: notes", "name: other"))
        renamed = await skills(client)

    assert [one["uri"] for one in after["resources"]] == ["skill://notes/SKILL.md", "skill://notes/more.md"]
    assert before["resources"][0] != after["resources"][0]
    assert read == "more"
    assert renamed == []


@pytest.mark.posix_only("makes links and a pipe")
async def test_nothing_but_its_own_plain_files_is_served(tmp_path: Path) -> None:
    place = folder_of(tmp_path)
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("secret")
    (place / "link.md").symlink_to(tmp_path / "secret.md")
    (place / "linked").symlink_to(tmp_path / "outside")
    (place / ".env").write_text("secret")
    (place / ".git").mkdir()
    (place / ".git" / "config").write_text("secret")
    os.mkfifo(place / "pipe")

    async with client_of(tmp_path) as client:
        (entry,) = await skills(client)
        listed = await children(client, "skill://notes")
        paths = (
            *("link.md", "linked/secret.md", ".env", ".git/config", "pipe", "../secret.md", "../../secret.md"),
            *("%2e%2e/secret.md", "..%2fsecret.md", "none.md", "SKILL.md/", "/SKILL.md", "skill.md", ""),
        )
        codes = [await code_of(client, f"skill://notes/{path}") for path in paths]
        folders = [
            await code_of(client, uri, "resources/directory/read")
            for uri in (
                "skill://notes/linked",
                "skill://notes/.git",
                "skill://notes/",
                "skill://notes/..",
                "skill://none",
            )
        ]

    assert [one["uri"] for one in entry["resources"]] == ["skill://notes/SKILL.md"]
    assert listed == [("skill://notes/SKILL.md", "text/markdown")]
    assert codes == [-32602] * len(paths)
    assert folders == [-32602] * 5


@pytest.mark.posix_only("makes a link")
async def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_followed(tmp_path: Path) -> None:
    place = folder_of(tmp_path)
    (tmp_path / "secret.md").write_text("secret")
    (place / "note.md").write_text("note")

    async with client_of(tmp_path) as client:
        await skills(client)
        (place / "note.md").unlink()
        (place / "note.md").symlink_to(tmp_path / "secret.md")
        code = await code_of(client, "skill://notes/note.md")
        (entry,) = await skills(client)

    assert code == -32602
    assert [one["uri"] for one in entry["resources"]] == ["skill://notes/SKILL.md"]


NOT_SERVED = {
    "no name": "---\ndescription: x\n---\n",
    "a name in capitals": "---\nname: Notes\ndescription: x\n---\n",
    "a long description": f"---\nname: notes\ndescription: {'x' * 1_025}\n---\n",
    "YAML that only we understand": "---\nname: notes\ndescription: use it: always\n---\n",
    "an alias": "---\nname: notes\ndescription: &a x\nmore: *a\n---\n",
    "a tag": "---\nname: notes\ndescription: !!str x\n---\n",
}


@pytest.mark.parametrize("content", NOT_SERVED.values(), ids=NOT_SERVED.keys())
async def test_what_a_host_would_have_to_refuse_stays_a_tool(tmp_path: Path, content: str) -> None:
    folder_of(tmp_path, content=content)
    good = folder_of(tmp_path, "good", NOTES.replace("name: notes", "name: good"))
    running = served(tmp_path)

    async with connected(running, "2026-07-28") as client:
        listed = await skill_uris(client)
        tools = [tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("skill__")]

    assert listed == ["skill://good/SKILL.md"]
    assert len(tools) == 2
    (problem,) = running.problems()
    assert problem["reason_code"] == "skill_not_served"
    assert str(good.parent / "notes") in problem["detail"]


async def test_a_skill_with_too_much_in_it_is_left_out(tmp_path: Path) -> None:
    place = folder_of(tmp_path)
    big = folder_of(tmp_path, "big", NOTES.replace("name: notes", "name: big"))
    for number in range(512):
        (place / f"{number}.md").write_text("x")
    (big / "data.bin").write_bytes(b"x" * (16 * 1024 * 1024))

    async with client_of(tmp_path) as client:
        listed = await skill_uris(client)
        codes = [await code_of(client, f"skill://{name}/SKILL.md", "skills/get") for name in ("notes", "big")]

    assert listed == []
    assert codes == [-32602] * 2


async def test_one_huge_file_keeps_its_skill_off_the_list_and_is_not_read(tmp_path: Path) -> None:
    huge = folder_of(tmp_path) / "huge.bin"
    huge.touch()
    os.truncate(huge, MAX_BYTES + 1)

    async with client_of(tmp_path) as client:
        listed = await skills(client)
        with pytest.raises(MCPError, match=f"longer than {MAX_BYTES} bytes"):
            await client.read_resource("skill://notes/huge.bin")
        os.truncate(huge, MAX_BYTES // 2)
        (entry,) = await skills(client)

    assert listed == []
    assert [one["size"] for one in entry["resources"]] == [len(NOTES), MAX_BYTES // 2]


# PRF-2, AGG-1
async def test_what_the_tools_of_a_client_leave_out_is_no_skill_for_it(tmp_path: Path) -> None:
    folder_of(tmp_path)

    denied = {"deny": ["skill__notes"]}
    narrow: dict[str, Any] = {"profiles": {"narrow": {"tools": denied}}, "profile_of_client": {"guest": "narrow"}}
    for settings in ({"catalog": denied}, {"permissions": denied}, narrow):
        guest = Implementation(name="guest", version="1")
        async with connected(served(tmp_path, **settings), "2026-07-28", client_info=guest) as client:
            listed = [str(one.uri) for one in (await client.list_resources()).resources]
            assert await skill_uris(client) == []
            assert "skill://notes/SKILL.md" not in listed
            assert await code_of(client, "skill://notes/SKILL.md") == -32602
            assert await code_of(client, "skill://notes/SKILL.md", "skills/get") == -32602
            assert await code_of(client, "skill://notes", "resources/directory/read") == -32602


async def test_a_file_that_rules_keep_from_being_read_is_no_part_of_its_skill(tmp_path: Path) -> None:
    place = folder_of(tmp_path)
    (place / "private.md").write_text("secret")

    async with client_of(tmp_path, permissions={"deny": [f"Read(/{place}/private.md)"]}) as client:
        (entry,) = await skills(client)
        code = await code_of(client, "skill://notes/private.md")

    assert [one["uri"] for one in entry["resources"]] == ["skill://notes/SKILL.md"]
    assert code == -32603  # the rule refuses it, whether it is there or not


async def test_a_read_is_on_the_record(tmp_path: Path) -> None:
    folder_of(tmp_path)
    running = served(tmp_path, audit={"path": str(tmp_path / "audit.jsonl")})

    async with connected(running, "2026-07-28") as client:
        await text(client, "skill://notes/SKILL.md")

    assert "skill__notes" in (tmp_path / "audit.jsonl").read_text()


async def test_many_skills_come_in_pages(tmp_path: Path) -> None:
    for number in range(103):
        folder_of(tmp_path, f"s{number:03}", NOTES.replace("name: notes", f"name: s{number:03}"))

    async with client_of(tmp_path) as client:
        first = await ask(client, "skills/list")
        found = await skill_uris(client)
        with pytest.raises(MCPError) as refused:
            await ask(client, "skills/list", cursor="made up")

    assert len(first["skills"]) == 100
    assert found == [f"skill://s{number:03}/SKILL.md" for number in range(103)]
    assert refused.value.error.code == -32602


async def test_a_skill_of_an_upstream_takes_no_place_of_the_users_own(tmp_path: Path) -> None:
    import json

    from tests.upstreams.skilled import Skilled, body

    folder_of(tmp_path)
    files = {"skill://notes/SKILL.md": body("notes"), "skill://notes/in/SKILL.md": body("in")}
    evil = Skilled(tmp_path, "evil", files, "skill://notes", "skill://notes/in")
    servers = tmp_path / "upstreams.json"
    servers.write_text(json.dumps({"mcpServers": {"evil": evil.config(naming="flat")}}))

    async with client_of(tmp_path, upstreams=[servers]) as client:
        listed = await skill_uris(client)
        read = await text(client, "skill://notes/SKILL.md")
        code = await code_of(client, "skill://notes/in/SKILL.md")

    assert listed == ["skill://notes/SKILL.md"]
    assert read == NOTES
    assert code == -32602
