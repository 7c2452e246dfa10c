"""The channels that the settings name, and what sends to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goat_mcp.calls.approvals.notices import Notices
from goat_mcp.calls.approvals.options import NotifyEntry
from goat_mcp.gateway.approvals.notify.channel import Channel, Messenger
from goat_mcp.gateway.approvals.notify.desktop import DesktopChannel
from goat_mcp.gateway.approvals.notify.notifier import Notifier, Report
from goat_mcp.gateway.approvals.notify.program import ProgramChannel
from goat_mcp.gateway.approvals.notify.slack import SlackMessenger
from goat_mcp.gateway.approvals.notify.telegram import TelegramMessenger
from goat_mcp.gateway.approvals.user_queue import approval_queue
from goat_mcp.gateway.build.services import Services


@dataclass(frozen=True)
class Configured:
    """Channels by their place in the settings; `messengers` are those among them whose messages have buttons."""

    channels: Sequence[tuple[str, Channel]]
    messengers: Sequence[tuple[str, Messenger]]


def configured_channels(entries: Sequence[NotifyEntry], services: Services) -> Configured:
    channels: list[tuple[str, Channel]] = []
    messengers: list[tuple[str, Messenger]] = []
    for at, entry in enumerate(entries):
        place = f"approval.notify.{at}"
        messenger = _messenger(entry, services)
        if messenger is not None:
            messengers.append((f"{place} ({messenger.name})", messenger))
        channel = messenger or _channel(entry, services)
        channels.append((f"{place} ({channel.name})", channel))
    return Configured(channels, messengers)


def _messenger(entry: NotifyEntry, s: Services) -> Messenger | None:
    if entry.telegram is not None:
        return TelegramMessenger(entry.telegram, s.http, s.references, s.state)
    return None if entry.slack is None else SlackMessenger(entry.slack, s.http, s.references)


def _channel(entry: NotifyEntry, s: Services) -> Channel:
    if entry.desktop:
        return DesktopChannel(s.environment, s.guard)
    return ProgramChannel(entry.program, s.environment, s.guard, s.redactor)


def build_notifier(services: Services, report: Report) -> Notifier:
    """`report` gets what is wrong with a channel."""
    s, warn = services, services.telemetry.warning
    options = s.settings.approval
    configured = configured_channels(options.notify, s)
    return Notifier(
        configured.channels,
        configured.messengers,
        queue=approval_queue(s.state, redactor=s.redactor, warn=warn),
        notices=Notices(s.state, warn),
        state=s.state,
        redactor=s.redactor,
        after_s=options.notify_after_s,
        report=report,
        warn=warn,
    )
