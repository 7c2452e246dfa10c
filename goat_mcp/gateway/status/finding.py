"""What `doctor` finds: an id for programs, a detail and a remedy for people, and how bad it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

OK, USAGE, AUTH, UNREACHABLE, TOOL_ERROR, SCHEMA = 0, 1, 3, 4, 5, 6
_FIRST = (USAGE, AUTH, UNREACHABLE, TOOL_ERROR, SCHEMA)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`exit_code` is what it alone would make of doctor's exit status; a warning's is 0."""

    id: str
    detail: str
    fix: str
    about: str = ""
    exit_code: Literal[0, 1, 3, 4, 5, 6] = 0

    @property
    def severity(self) -> Literal["error", "warning"]:
        return "error" if self.exit_code else "warning"

    def wire(self) -> dict[str, Any]:
        return {**asdict(self), "severity": self.severity}


def exit_status(findings: list[Finding]) -> int:
    """Of several the first that must be mended: a wrong configuration, then a login, then what cannot be reached."""
    codes = {finding.exit_code for finding in findings}
    return next((code for code in _FIRST if code in codes), OK)
