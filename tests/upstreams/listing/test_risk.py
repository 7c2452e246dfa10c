"""What an upstream's hints are worth."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Effect, Mode, effect_by_mode
from goat_mcp.core.side_effect import Risk
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.listing.proxy_tool import UpstreamTool, claimed_risk, upstream_tool


def tool(name: str, annotations: dict[str, Any] | None, *, trusted: bool = False, **schema: Any) -> UpstreamTool:
    config = UpstreamConfig(name="s", server="s", target=StdioLaunch("s"), trust_annotations=trusted)
    entry: dict[str, Any] = {"name": name, "inputSchema": {"type": "object", **schema}}
    if annotations is not None:
        entry["annotations"] = annotations
    return upstream_tool(config, entry, _NoRelay())


class _NoRelay:
    def admit(self, spec: Any) -> None:
        raise AssertionError("nothing is called here")

    async def call(self, spec: Any, arguments: Any, ctx: Any) -> Any:
        raise AssertionError("nothing is called here")


@pytest.mark.parametrize(
    ("read_only", "destructive", "risk"),
    [
        (True, True, Risk.CRITICAL),
        (True, False, Risk.LOW),
        (True, None, Risk.LOW),
        (False, True, Risk.CRITICAL),
        (False, False, Risk.HIGH),
        (False, None, Risk.HIGH),
        (None, True, Risk.CRITICAL),
        (None, False, Risk.HIGH),
        (None, None, Risk.HIGH),
    ],
)
def test_the_claimed_class_of_all_nine_hint_pairs(
    read_only: bool | None, destructive: bool | None, risk: Risk
) -> None:  # RSK-1
    hints = {"readOnlyHint": read_only, "destructiveHint": destructive}

    assert claimed_risk({name: value for name, value in hints.items() if value is not None}) is risk


def test_a_destructive_name_outweighs_a_read_only_claim() -> None:  # RSK-2, RSK-4
    liar = tool(
        "delete_repo", {"title": "Look", "readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
    )

    assert (liar.spec.claimed_risk, liar.spec.effective_risk, liar.spec.risk) == (
        Risk.LOW,
        Risk.CRITICAL,
        Risk.CRITICAL,
    )
    assert liar.spec.wire()["annotations"] == {
        "title": "Look",
        "readOnlyHint": False,
        "destructiveHint": True,
        "openWorldHint": False,
    }


@pytest.mark.parametrize(
    ("name", "schema", "risk"),
    [
        ("repoDelete", {}, Risk.CRITICAL),
        ("create_issue", {}, Risk.HIGH),
        ("list_commits", {}, Risk.LOW),
        ("get_run", {}, Risk.LOW),
        ("lookup", {"properties": {"command": {"type": "string"}}}, Risk.HIGH),
        ("lookup", {}, Risk.LOW),
    ],
)
def test_words_and_fields_that_give_a_tool_away(name: str, schema: dict[str, Any], risk: Risk) -> None:
    assert tool(name, {"readOnlyHint": True}, **schema).spec.effective_risk is risk


def test_a_claim_alone_is_never_allowed_unasked_and_its_hints_pass_as_they_came() -> None:  # RSK-3, RSK-4
    claiming = tool("lookup", {"readOnlyHint": True})

    effects = {mode: effect_by_mode(mode, claiming.spec) for mode in Mode}

    assert effects == {
        Mode.DEFAULT: Effect.ASK,
        Mode.ACCEPT_EDITS: Effect.ASK,
        Mode.PLAN: Effect.DENY,
        Mode.DONT_ASK: Effect.DENY,
        Mode.BYPASS: Effect.ALLOW,
    }
    assert claiming.spec.wire()["annotations"] == {"readOnlyHint": True}


def test_the_operator_may_vouch_for_a_server() -> None:  # RSK-2, RSK-3
    trusted = tool("delete_view_of_nothing", {"readOnlyHint": True}, trusted=True)

    assert effect_by_mode(Mode.DEFAULT, trusted.spec) is Effect.ALLOW
    assert trusted.spec.wire()["annotations"] == {"readOnlyHint": True}


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf", "allOf"])
def test_a_field_for_code_in_a_branch_of_the_root_gives_a_tool_away_too(keyword: str) -> None:  # RSK-2
    branches: dict[str, Any] = {keyword: [{"properties": {"command": {"type": "string"}}}]}
    hidden = tool("lookup", {"readOnlyHint": True}, **branches)

    assert hidden.spec.effective_risk is Risk.HIGH


@pytest.mark.parametrize("name", ["lookup", "delete_repo"])
def test_missing_hints_stay_missing(name: str) -> None:  # RSK-4
    assert "annotations" not in tool(name, None).spec.wire()
    assert tool(name, {"title": "T"}).spec.wire()["annotations"] == {"title": "T"}
