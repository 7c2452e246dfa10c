"""Skills behind two gateways, and in a circle of two, which ends (CHN-1, CHN-2, SEP-2640)."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.goat import connected
from tests.e2e.test_gateway_chains import BOTH_ERAS, as_entry, at, goat_at, launch
from tests.free_port import free_port
from tests.skill_client import children, skill_uris, text
from tests.upstreams.skilled import Skilled, body

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]
FILES = {"skill://refunds/SKILL.md": body("refunds"), "skill://refunds/a/b.md": "b"}
NOTES = "---\nname: notes\ndescription: How notes are written\n---\nWrite.\n"


def own_skill(folder: Path) -> tuple[str, str]:
    """The option that gives a gateway a skill of its own."""
    place = folder / "skills" / "notes"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(NOTES)
    return "--set", f"skills={json.dumps([str(folder / 'skills')])}"


@pytest.mark.parametrize("era", BOTH_ERAS)
async def test_a_skill_behind_two_gateways_has_both_in_its_uri(tmp_path: Path, era: str) -> None:
    shop = Skilled(tmp_path, "shop", FILES, "skill://refunds")
    inner = launch(tmp_path, "inner", shop=shop.config())
    inner = type(inner)(inner.folder, inner.workspace, (*inner.options, *own_skill(inner.folder)))
    outer = launch(tmp_path, "outer", inner=as_entry(inner))
    async with connected(outer, era) as client:
        listed = await skill_uris(client)
        read = [await text(client, uri) for uri in listed]
        below = await children(client, "skill://mcp__inner/mcp__shop/refunds/a")

    assert listed == ["skill://mcp__inner/notes/SKILL.md", "skill://mcp__inner/mcp__shop/refunds/SKILL.md"]
    assert read == [NOTES, FILES["skill://refunds/SKILL.md"]]
    assert below == [("skill://mcp__inner/mcp__shop/refunds/a/b.md", "text/markdown")]


async def test_two_gateways_that_are_each_others_upstreams_list_their_skills_once_and_soon(tmp_path: Path) -> None:
    left_port, right_port = free_port(), free_port()
    shop = Skilled(tmp_path, "shop", FILES, "skill://refunds")
    left = launch(tmp_path, "left", other=at(right_port), shop=shop.config())
    right = launch(tmp_path, "right", other=at(left_port))
    right = type(right)(right.folder, right.workspace, (*right.options, *own_skill(right.folder)))
    with ExitStack() as goats:
        first = goats.enter_context(goat_at(left_port, left))
        second = goats.enter_context(goat_at(right_port, right))
        async with connected(first, "2026-07-28") as left_client, connected(second, "2026-07-28") as right_client:
            await left_client.list_tools()
            await right_client.list_tools()
            await skill_uris(left_client)
            started_s = time.monotonic()
            of_left, of_right = await skill_uris(left_client), await skill_uris(right_client)
            took_s = time.monotonic() - started_s
            read = await text(right_client, "skill://mcp__other/mcp__shop/refunds/SKILL.md")

    assert of_left == ["skill://mcp__other/notes/SKILL.md", "skill://mcp__shop/refunds/SKILL.md"]
    assert of_right == ["skill://notes/SKILL.md", "skill://mcp__other/mcp__shop/refunds/SKILL.md"]
    assert read == FILES["skill://refunds/SKILL.md"]
    assert took_s < 9
