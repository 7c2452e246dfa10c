"""The state that a command shares with the servers of its user."""

from __future__ import annotations

from dataclasses import replace

from goat_mcp.state.directory import StateDirectory


def own_state() -> StateDirectory:
    """The state directory, with what several servers share if the user's settings name that (`state.url`).

    Raises `BrokenSettings`, `ToolError(CONFIG)`.
    """
    from goat_mcp.settings.loading import load_settings
    from goat_mcp.state.redis.shared_state import SharedState
    from goat_mcp.state.secret_references import SecretReferences

    state = StateDirectory.default()
    settings = load_settings({}, state=state)
    return replace(state, shared=SharedState.of(settings.state, SecretReferences(state=state)))
