"""What the handlers of declared tools give back or raise reaches a real client, or an error does: never silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.goat import Launch, connected, http_goat
from tests.manifests.declared import python, tool, write

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

SOURCE = r"""
async def half(ctx, input):
    return {"a": "\ud800"}

async def odd(ctx, input):
    raise ValueError("cut \ud83d emoji")

async def deep(ctx, input):
    value = 1
    for _ in range(input["depth"]):
        value = {"a": value}
    return value

handlers = {"half": half, "odd": odd, "deep": deep}
"""


def declared(folder: Path) -> Path:
    python(folder, "probe", SOURCE, "half", "odd", "deep")
    script = "#!/bin/sh\ncat >/dev/null\nprintf '%s' '\"\\ud800\"'\n"
    write(folder, tool("script", {"command": ["./script.sh"]}, "half"), script_sh=script)
    return folder


async def answers(client: Any) -> dict[str, Any]:
    """By call: the code and name of its error, or that it worked."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("probe__half", {}),
        ("script__half", {}),
        ("probe__odd", {}),
        *(("probe__deep", {"depth": depth}) for depth in (128, 129, 250, 900)),
    ]
    told: dict[str, Any] = {}
    for name, arguments in calls:
        result: Any = await client.call_tool(name, arguments)
        key = " ".join([name, *map(str, arguments.values())])
        told[key] = "worked"
        if result.is_error:
            error = result.structured_content["error"]
            told[key] = (error["name"], error["message"][:18])
    return told


EXPECTED = {
    "probe__half": ("NotJson", "probe__half gave b"),
    "script__half": ("NotJson", "script__half gave "),
    "probe__odd": ("ValueError", r"cut \ud83d emoji"),
    "probe__deep 128": "worked",
    "probe__deep 129": ("NotJson", "probe__deep gave b"),
    "probe__deep 250": ("NotJson", "probe__deep gave b"),
    "probe__deep 900": ("NotJson", "deep gave back a d"),
}


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_value_no_client_could_read_is_an_error(launch: Launch, era: str) -> None:
    folder = declared(launch.folder / "declared")

    async with connected(replace(launch, options=(*launch.options, "--manifests", str(folder))), era) as client:
        assert await answers(client) == EXPECTED


async def test_a_value_no_client_could_read_is_an_error_over_http(launch: Launch) -> None:
    folder = declared(launch.folder / "declared")

    with http_goat(replace(launch, options=(*launch.options, "--manifests", str(folder)))) as goat:
        async with connected(goat, "2026-07-28") as client:
            assert await answers(client) == EXPECTED
