"""Text of somebody who is not the user, between marks that it cannot forge: it carries none of the user's authority."""

from __future__ import annotations

import secrets

from goat_mcp.files.documents.visible_text import make_visible

NONCE_BYTES = 6


def marked(kind: str, about: str, text: str, below: str = "") -> str:
    """`kind` names the marks, `about` says whose text it is; `below` is our own word on it."""
    nonce = secrets.token_hex(NONCE_BYTES)
    head = f"<<<{kind} {nonce} {about}"
    return "\n".join(part for part in (head, make_visible(text), below, f"{kind} {nonce}>>>") if part)
