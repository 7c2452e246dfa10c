"""What tools may know of the settings tree, which lies above them."""

from __future__ import annotations

from typing import Any, Protocol


class SettingsView(Protocol):
    """The settings by their keys, dots as levels, as whoever started the server left them."""

    def key_of(self, name: str) -> str:
        """The key that `name` stands for. Raises `ToolError(SETTING)` with near ones."""
        ...

    def value(self, key: str) -> Any:
        """As JSON. Of a secret only `set` or `unset`."""
        ...

    def source(self, key: str) -> str:
        """`flag`, `environment`, `file` or `default`."""
        ...

    def check(self, key: str, value: Any) -> Any:
        """The value as the setting takes it, for a session that wants to change it.

        Raises `ToolError`: PERMISSION for a setting that is the user's alone, INPUT for a wrong value.
        """
        ...
