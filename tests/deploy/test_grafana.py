"""The board and the page of metrics name metrics and labels that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.process_collector import ProcessCollector

from goat_mcp.calls.observability.call_metrics import CallMetrics
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.status.metrics import SERVER_GAUGES, GatewayMetrics
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory
from tests.deploy.files import ROOT

BOARD = ROOT / "deploy" / "grafana.json"
PAGE = ROOT / "docs" / "metrics.md"
PROMETHEUS_ADDS = {"instance", "job"}
_NAME = re.compile(r"\b(?:goat_mcp|process)_\w+")
_SELECTED = re.compile(r"\b((?:goat_mcp|process)_\w+)\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*=~?")
_GROUPED = re.compile(r"by \(([^)]*)\)")

pytestmark = pytest.mark.anyio


@pytest.fixture
async def shown(tmp_path: Path) -> dict[str, set[str]]:
    """The labels of each metric that a gateway with an upstream and a failed call shows."""
    upstreams = tmp_path / "upstreams.json"
    upstreams.write_text(json.dumps({"mcpServers": {"notes": {"command": "/no/such/program"}}}))
    settings = settings_of({"metrics": {"listen": "127.0.0.1:0"}, "upstreams": [str(upstreams)]}, "the test")
    gateway = Gateway(settings, approval=Approval.DENY, serves_http=True, state=StateDirectory(tmp_path / "state"))
    calls = CallMetrics(max_tools=10)
    calls.record("Glob", 0.1, "E_STALE")
    metrics = GatewayMetrics(gateway, calls, lambda: dict.fromkeys(SERVER_GAUGES, 1.0))

    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families((await metrics.text()).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def named_on_board() -> set[str]:
    return set(_NAME.findall(BOARD.read_text()))


def expressions() -> list[str]:
    board = json.loads(BOARD.read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


async def test_the_board_asks_for_metrics_and_labels_that_there_are(shown: dict[str, set[str]]) -> None:
    labels = {
        (name, label)
        for expression in expressions()
        for name, selector in _SELECTED.findall(expression)
        for label in [
            *_LABEL.findall(selector),
            *(word.strip() for group in _GROUPED.findall(expression) for word in group.split(",")),
        ]
    }

    assert named_on_board() - set(shown) == set()
    assert {(name, label) for name, label in labels if label not in shown[name] | PROMETHEUS_ADDS} == set()


async def test_every_metric_of_ours_is_on_the_board_and_on_the_page(shown: dict[str, set[str]]) -> None:
    ours = {re.sub(r"_(count|sum|bucket|created)$", "", name) for name in shown if name.startswith("goat_mcp_")}
    ours -= {"goat_mcp_call_errors"}  # with `_created` cut off
    on_board = {re.sub(r"_(count|sum|bucket)$", "", name) for name in named_on_board()}
    on_page = set(re.findall(r"`(goat_mcp_\w+)`", PAGE.read_text()))

    assert on_page == ours
    assert ours - on_board == set()


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = json.loads(BOARD.read_text())["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_process_metrics_are_what_the_library_has() -> None:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)

    names = {sample.name for family in registry.collect() for sample in family.samples}

    assert {name for text in expressions() for name in _NAME.findall(text) if name.startswith("process_")} <= names
