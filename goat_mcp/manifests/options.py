"""What a user can set about manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ToolConfigs = Mapping[str, Mapping[str, Any]]
"""`tools.RESOURCE`: what a declared resource is configured with, as its manifest's `config` describes it."""
