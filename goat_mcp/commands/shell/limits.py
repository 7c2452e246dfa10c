"""How much of a script is read; what is longer is asked about (R-SHELL-6)."""

from __future__ import annotations

MAX_SCRIPT_BYTES = 16_384
MAX_COMMANDS = 200
