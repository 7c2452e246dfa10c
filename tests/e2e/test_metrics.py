"""Metrics of a real server, as Prometheus reads them."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.conftest import UNASKED, ours, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]
WITHIN_S = 20.0


def metrics_url(goat: HttpGoat) -> str:
    ends_at_s = time.monotonic() + WITHIN_S
    while time.monotonic() < ends_at_s:
        for line in goat.said:
            if "metrics at " in line:
                return line.split("metrics at ")[1].strip()
        time.sleep(0.01)
    raise AssertionError(f"it did not say where its metrics are: {goat.said}")


async def samples(url: str, token: str = "") -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """By name and labels."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"} if token else {}) as client:
        response = await client.get(url)
    assert response.status_code == 200, response.text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


@pytest.fixture
def launch(launch: Launch) -> Launch:
    upstreams = upstream_file(launch.folder / "upstreams.json", plain=ours("plain"))
    return replace(launch, options=("--upstreams", str(upstreams), "--set", "metrics.listen=127.0.0.1:0", *UNASKED))


@pytest.fixture
def goat(launch: Launch) -> Generator[HttpGoat]:
    with http_goat(launch) as running:
        yield running


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_calls_errors_and_upstreams_are_counted(goat: HttpGoat, mode: str) -> None:
    url = metrics_url(goat)

    async with connected(goat, mode) as client:
        for _ in range(3):
            await client.call_tool("Glob", {"pattern": "*"})
        await client.call_tool("Read", {"file_path": "no/such/file"})
        await client.call_tool("mcp__plain__echo", {"text": "a"})
        with pytest.raises(MCPError):
            await client.call_tool("made_up_by_the_client", {})
        with pytest.raises(MCPError):
            await client.call_tool("mcp__plain__refuse", {})
        found = await samples(url)

    count = "goat_mcp_call_duration_seconds_count"
    assert found[count, (("tool", "Glob"), ("upstream", ""))] == 3
    assert found[count, (("tool", "mcp__plain__echo"), ("upstream", "plain"))] == 1
    errors = {labels: value for (name, labels), value in found.items() if name == "goat_mcp_call_errors_total"}
    assert {(dict(labels)["tool"], dict(labels)["code"]): value for labels, value in errors.items()} == {
        ("Read", "E_PATH_RELATIVE"): 1,
        ("unknown", "E_TOOL_NOT_FOUND"): 1,
        ("mcp__plain__refuse", "protocol_error"): 1,
    }
    assert "made_up_by_the_client" not in str(found)
    assert found["goat_mcp_upstream_state", (("state", "ready"), ("upstream", "plain"))] == 1
    assert found["goat_mcp_sessions", ()] == (1 if mode == "legacy" else 0)
    assert found["goat_mcp_approvals_waiting", ()] == 0
    assert found["goat_mcp_calls_waiting", ()] == 0
    assert found["process_resident_memory_bytes", ()] > 0


async def test_no_page_and_no_other_name_reads_metrics(goat: HttpGoat) -> None:
    url = metrics_url(goat)
    async with httpx2.AsyncClient() as client:
        statuses = [
            (await client.get(url, headers={"host": "evil.example"})).status_code,
            (await client.get(url, headers={"origin": "http://127.0.0.1"})).status_code,
            (await client.post(url)).status_code,
            (await client.get(url.replace("/metrics", "/other"))).status_code,
            (await client.get(goat.url.replace("/mcp", "/metrics"), headers=goat.headers)).status_code,
        ]

    assert statuses == [421, 403, 405, 404, 404]


async def test_with_a_token_only_its_holder_reads_metrics(launch: Launch, tmp_path: Path) -> None:
    token_file = tmp_path / "metrics-token"
    with http_goat(replace(launch, options=(*launch.options, "--set", f"metrics.token_file={token_file}"))) as goat:
        url, token = metrics_url(goat), token_file.read_text().strip()
        async with httpx2.AsyncClient() as client:
            without = await client.get(url)
            of_mcp = await client.get(url, headers=goat.headers)

        assert (without.status_code, of_mcp.status_code) == (401, 401)
        assert without.headers["www-authenticate"] == "Bearer"
        assert ("goat_mcp_sessions", ()) in await samples(url, token)
