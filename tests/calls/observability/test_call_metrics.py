"""What calls leave in the metrics, and that nobody can fill them with rows."""

from __future__ import annotations

from goat_mcp.calls.observability.call_metrics import CallMetrics


def rows(metrics: CallMetrics, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def counts(metrics: CallMetrics) -> dict[tuple[str, ...], float]:
    return rows(metrics, "goat_mcp_call_duration_seconds_count", "tool", "upstream")


def errors(metrics: CallMetrics) -> dict[tuple[str, ...], float]:
    return rows(metrics, "goat_mcp_call_errors_total", "tool", "upstream", "code")


def test_calls_are_counted_by_tool_and_upstream() -> None:
    metrics = CallMetrics(max_tools=10)

    metrics.record("Glob", 0.02, None)
    metrics.record("mcp__notes__read__all", 0.2, None)
    metrics.record("mcp__notes__read__all", 0.3, "E_TIMEOUT")

    assert counts(metrics) == {("Glob", ""): 1, ("mcp__notes__read__all", "notes"): 2}
    assert errors(metrics) == {("mcp__notes__read__all", "notes", "E_TIMEOUT"): 1}
    sums = rows(metrics, "goat_mcp_call_duration_seconds_sum", "tool")
    assert sums == {("Glob",): 0.02, ("mcp__notes__read__all",): 0.5}


def test_tools_past_the_limit_share_a_row_and_those_before_keep_theirs() -> None:
    metrics = CallMetrics(max_tools=2)

    for name in ("a", "b", "c", "d", "b"):
        metrics.record(name, 0.1, None)

    assert counts(metrics) == {("a", ""): 1, ("b", ""): 2, ("other", ""): 2}


def test_names_and_codes_that_others_made_up_are_no_labels() -> None:
    metrics = CallMetrics(max_tools=10)

    metrics.record(None, 0.1, "E_TOOL_NOT_FOUND")
    metrics.record("Glob", 0.1, "-32603")
    metrics.record("Glob", 0.1, "whatever a handler says")

    assert errors(metrics) == {
        ("unknown", "", "E_TOOL_NOT_FOUND"): 1,
        ("Glob", "", "protocol_error"): 1,
        ("Glob", "", "other"): 1,
    }
