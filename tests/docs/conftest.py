"""The walk-through's agent thinks with the LiteLLM proxy of the end-to-end tests."""

from __future__ import annotations

from tests.e2e.litellm_proxy import litellm, litellm_running

__all__ = ["litellm", "litellm_running"]
