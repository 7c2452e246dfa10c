"""`approval.notify`: what an entry may be."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from goat_mcp.settings.settings import Settings, problems_in

CHAT = {"token": "1:canary-of-the-token", "chat": -100777, "user": 5}
CHANNEL = {"token": "canary-token", "app_token": "canary-app", "channel": "C01", "user": "U01"}


def test_each_kind_of_entry_is_understood_and_none_is_the_default() -> None:
    entries = [{"program": ["/bin/ring", "-x"]}, {"desktop": True}, {"telegram": CHAT}, {"slack": CHANNEL}]

    settings = Settings.model_validate({"approval": {"notify": entries, "notify_after_s": 0}})

    assert [entry.model_dump(exclude_unset=True).keys() for entry in settings.approval.notify] == [
        entry.keys() for entry in entries
    ]
    assert Settings().approval.notify == () and Settings().approval.notify_after_s == 5


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"desktop": False},
        {"desktop": True, "telegram": CHAT},
        {"program": "ring"},
        {"program": ["./ring"]},
        {"telegram": {**CHAT, "user": "@somebody"}},
        {"telegram": {**CHAT, "user": 0}},
        {"telegram": {key: value for key, value in CHAT.items() if key != "user"}},
        {"slack": {**CHANNEL, "channel": "#general"}},
        {"slack": {**CHANNEL, "user": "heidi"}},
        {"email": "me@example.org"},
    ],
)
def test_any_other_entry_is_refused_and_no_token_is_shown(entry: dict[str, Any]) -> None:
    tree = {"approval": {"notify": [entry]}}

    with pytest.raises(ValidationError):
        Settings.model_validate(tree)

    assert problems_in(tree)
    assert "canary" not in str(problems_in(tree))
