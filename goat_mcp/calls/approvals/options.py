"""The settings `approval.*`: who answers an ask, how long a call waits for the answer, and who is notified."""

from __future__ import annotations

from pydantic import Field

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.settings_part import SettingsPart

WAIT_S = 60.0
EXPIRES_S = 3600.0


class ApprovalOptions(SettingsPart):
    """`by` is who answers: the setting `approval: deny` is short for `approval.by: deny`.

    A call that its client cannot be asked about waits `wait_s` for a decision from elsewhere; what is not decided
    within `expires_s` expires.
    """

    by: Approval | None = None
    wait_s: float = Field(default=WAIT_S, ge=0, le=3600)
    expires_s: float = Field(default=EXPIRES_S, ge=1, le=7 * 86_400)
