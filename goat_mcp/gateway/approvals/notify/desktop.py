"""A notification on this desktop. It decides nothing: any program of the session could click on it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from goat_mcp.calls.approvals.wording import headline
from goat_mcp.calls.hooks.runner import hook_environment
from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.gateway.approvals.notify.channel import TEST_TEXT
from goat_mcp.gateway.approvals.notify.message import Message
from goat_mcp.gateway.approvals.notify.program import run_notifier
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.program_lookup import program_on

TITLE = "goat-mcp asks"
_MAX_CHARS = 240
_SESSION = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XAUTHORITY")
_APPLE_SCRIPT = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"


class Notifying(NamedTuple):
    """The program of a system, and its words before title and text."""

    program: str
    words: Sequence[str] = ()
    has_markup: bool = False


PROGRAMS = {
    # Never spliced into AppleScript: title and text are its arguments.
    "macos": Notifying("osascript", ("-e", _APPLE_SCRIPT)),
    "linux": Notifying("notify-send", ("--app-name=goat-mcp", "--"), has_markup=True),
}


class DesktopChannel:
    def __init__(self, environment: CommandEnvironment, guard: ProcessGuard, system: str = platform.SYSTEM) -> None:
        self._environment = environment
        self._guard = guard
        self._notifying = PROGRAMS.get(system)
        self._system = system
        self.name = self.key = "desktop"

    async def send(self, message: Message) -> str:
        request = message.approval.request
        what = "; ".join(f"{name}: {text}" for name, text in request.arguments[:2])
        line = make_visible(" · ".join(filter(None, (headline(request), what))).replace("\n", " "))
        shown = f"{line[:_MAX_CHARS]}…" if len(line) > _MAX_CHARS else line
        await self._show(f"{shown}\n{message.command}")
        return ""

    async def send_test(self) -> None:
        await self._show(TEST_TEXT)

    async def check(self) -> None:
        await self._program(await hook_environment(self._environment, _SESSION))

    async def _show(self, text: str) -> None:
        environment = await hook_environment(self._environment, _SESSION)
        program, notifying = await self._program(environment)
        shown = html.escape(text, quote=False) if notifying.has_markup else text
        await run_notifier([program, *notifying.words, TITLE, shown], b"", environment, self._guard)

    async def _program(self, environment: dict[str, str]) -> tuple[str, Notifying]:
        if self._notifying is None:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"desktop notifications are not available on {self._system}",
                "Use approval.notify with program, telegram or slack.",
            )
        program = program_on(environment["PATH"], self._notifying.program)
        if program is None:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"there is no {self._notifying.program} on the PATH",
                "Install it (on Debian: libnotify-bin), or use another entry of approval.notify.",
            )
        return program, self._notifying
