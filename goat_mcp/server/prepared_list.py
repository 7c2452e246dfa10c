"""The entries of a list answer, whose JSON is made once: a list of thousands of tools is sent as it was sent before."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from pydantic_core import to_json

_END = b"}}"


class PreparedList(list[Any]):
    """Entries that nobody changes any more."""

    _json: bytes | None = None

    @property
    def json(self) -> bytes:
        """Raises `PydanticSerializationError` if a text in it is no Unicode."""
        if self._json is None:
            self._json = to_json(list(self))
        return self._json


def prepared_frame(message: types.JSONRPCMessage) -> bytes | None:
    """The frame of an answer that holds prepared entries as its `tools`; None for any other message.

    Raises `PydanticSerializationError`.
    """
    if not isinstance(message, types.JSONRPCResponse) or not isinstance(
        entries := message.result.get("tools"), PreparedList
    ):
        return None
    others = {member: value for member, value in message.result.items() if member != "tools"}
    head = to_json({"jsonrpc": message.jsonrpc, "id": message.id, "result": others}).removesuffix(_END)
    return b"".join((head, b"," if others else b"", b'"tools":', entries.json, _END))
