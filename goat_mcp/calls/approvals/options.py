"""The settings `approval.*`: who answers an ask, how long a call waits for the answer, and who is notified."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from goat_mcp.calls.hooks.settings import program_words
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.settings_part import BaseUrl, Secret, SettingsPart

WAIT_S = 60.0
EXPIRES_S = 3600.0
NOTIFY_AFTER_S = 5.0


class TelegramChat(SettingsPart):
    """A bot and the chat it writes to. Only `user` decides there. `base_url` is a Bot API server of one's own."""

    token: Secret
    chat: int
    user: int = Field(gt=0)
    base_url: BaseUrl = ""


class SlackChannel(SettingsPart):
    """A bot and the channel it writes to, both by id. Only `user` decides there. `app_token` is for Socket Mode."""

    token: Secret
    app_token: Secret
    channel: str = Field(pattern=r"^[A-Z0-9]{2,40}$")
    user: str = Field(pattern=r"^[A-Z0-9]{2,40}$")
    base_url: BaseUrl = ""


class NotifyEntry(SettingsPart):
    """One way to reach the person: exactly one of these."""

    program: Annotated[tuple[str, ...], BeforeValidator(program_words)] = ()
    desktop: bool = False
    telegram: TelegramChat | None = None
    slack: SlackChannel | None = None

    @model_validator(mode="after")
    def _is_one(self) -> NotifyEntry:
        if sum(map(bool, (self.program, self.desktop, self.telegram, self.slack))) != 1:
            raise ValueError("wants exactly one of program, desktop: true, telegram, slack")
        return self


class ApprovalOptions(SettingsPart):
    """`by` is who answers: the setting `approval: deny` is short for `approval.by: deny`.

    A call that its client cannot be asked about waits `wait_s` for a decision from elsewhere; what is not decided
    within `expires_s` expires. What is not decided within `notify_after_s` is sent to everybody in `notify`.
    """

    by: Approval | None = None
    wait_s: float = Field(default=WAIT_S, ge=0, le=3600)
    expires_s: float = Field(default=EXPIRES_S, ge=1, le=7 * 86_400)
    notify: tuple[NotifyEntry, ...] = ()
    notify_after_s: float = Field(default=NOTIFY_AFTER_S, ge=0, le=3600)
