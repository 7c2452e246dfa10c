"""Texts that are secret, as they lie in the shared state: encrypted with the key that all its servers have."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when something secret is shared
    from cryptography.fernet import MultiFernet

_PURPOSE = b"goat-mcp secrets in the shared state"


class EncryptedText:
    """The first of `keys` encrypts, all decrypt: a key is replaced while servers run (`state.previous_key`)."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def sealed(self, name: str, text: str) -> str:
        """`text`, good under this name only."""
        return self._fernet.encrypt(json.dumps([name, text]).encode()).decode()

    def opened(self, name: str, sealed: str) -> str | None:
        """None for what none of the keys has made, or what was made for another name."""
        from cryptography.fernet import InvalidToken

        try:
            of, text = json.loads(self._fernet.decrypt(sealed.encode()))
        except (InvalidToken, ValueError):
            return None
        return text if of == name else None

    def is_old(self, name: str, sealed: str) -> bool:
        """Whether it can be read, and another key than the first one has made it."""
        return (
            len(self._keys) > 1 and self.opened(name, sealed) is not None and self._first.opened(name, sealed) is None
        )

    @cached_property
    def _first(self) -> EncryptedText:
        return EncryptedText(self._keys[:1])

    @cached_property
    def _fernet(self) -> MultiFernet:
        from cryptography.fernet import Fernet, MultiFernet
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derived = (HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(key.encode()) for key in self._keys)
        return MultiFernet([Fernet(base64.urlsafe_b64encode(one)) for one in derived])
