"""What an approval of a call is bound to (R-PERM-4): tool, definition, arguments, directories and principal."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from goat_mcp.calls.permissions.rule import Call


def subject_of(call: Call, principal: str, diff: str) -> str:
    """The same for the same call of the same principal, and for no other. The files that it touches are part of it: a
    path may mean another one by now. So is the diff that was shown: the file may hold something else by now."""
    return _sha256(
        [
            principal,
            call.spec.rule_name,
            pin_of(call),
            call.arguments,
            call.directory,
            *(call.roots, call.asked, call.reads, call.writes, call.runs),
            diff,
        ]
    )


def arguments_sha256(call: Call) -> str:
    return _sha256(call.arguments)


def pin_of(call: Call) -> str:
    """Of the definition that the person is shown the call of, with the files of a declared tool."""
    return _sha256([call.spec.wire(), call.definition()])


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
