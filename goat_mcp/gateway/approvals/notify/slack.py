"""Slack: a message with two buttons, and what is pressed, read in Socket Mode: no port has to be open for it.

Source: Slack's documentation (Socket Mode, block_actions payloads, chat.postMessage).
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from goat_mcp.calls.approvals.options import SlackChannel
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import mapping, mappings
from goat_mcp.gateway.approvals.notify.accounts import notify_account, web_api
from goat_mcp.gateway.approvals.notify.channel import TEST_TEXT, ButtonPress, HandlePress
from goat_mcp.gateway.approvals.notify.message import Message
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.domains import host_is_in_domain
from goat_mcp.web.http.target import parse_target
from goat_mcp.web.http.websocket import WebSocket, can_open
from goat_mcp.web.messaging.bot_api import Account
from goat_mcp.web.messaging.slack_api import SLACK, ask_slack, change_slack
from goat_mcp.web.messaging.text_parts import split_text

LISTEN_S = 5.0
SILENT_S = 60.0
"""Slack pings much more often."""
_BLOCK_UNITS = 2900
_ACTIONS = {"goat_mcp_approve": True, "goat_mcp_deny": False}
_VALUE = re.compile(r"([0-9a-f]{32}):([0-9a-f]{12})")


class SlackMessenger:
    name = "slack"

    def __init__(self, channel: SlackChannel, http: HttpClient, references: SecretReferences) -> None:
        self._channel = channel
        self._http = http
        self._references = references
        self._open: AsyncExitStack | None = None
        self._socket: WebSocket | None = None
        self.place, self.user = channel.channel, channel.user
        self.key = f"slack {channel.channel} {channel.user}"

    @property
    def account(self) -> str:
        return f"slack-{hashlib.sha256(self._app_account().token.encode()).hexdigest()[:16]}"

    async def send(self, message: Message) -> str:
        if not can_open():
            await self._post("chat.postMessage", message.asking, [])
            raise _without_extra()
        buttons = [_button("Deny", "goat_mcp_deny", message)]
        if message.may_approve:
            buttons.insert(0, {**_button("Approve once", "goat_mcp_approve", message), "style": "primary"})
        sent = await self._post("chat.postMessage", message.asking, [{"type": "actions", "elements": buttons}])
        if not isinstance(sent.get("ts"), str):
            raise ToolError(
                ErrorCode.NETWORK,
                "Slack answered chat.postMessage without a message",
                "Look into the channel: it may be there all the same.",
            )
        return sent["ts"]

    async def send_test(self) -> None:
        await self._post("chat.postMessage", TEST_TEXT, [])

    async def check(self) -> None:
        if not can_open():
            raise _without_extra()
        account = self._account()
        await ask_slack(web_api(self._http, account), account, "auth.test")
        await self._socket_url()

    async def edit(self, id: str, text: str) -> None:
        await self._post("chat.update", text, [], ts=id)

    async def read_answers(self, handle_press: HandlePress) -> None:
        try:
            socket = self._socket or await self._connect()
            text = await socket.receive(LISTEN_S)
            if text is not None:
                await self._take(socket, text, handle_press)
            elif time.monotonic() - socket.heard_s > SILENT_S:
                await self.stop_reading()  # nothing of it is left on the way
        except BaseException:
            await self.stop_reading()
            raise

    async def stop_reading(self) -> None:
        opened, self._open, self._socket = self._open, None, None
        if opened is not None:
            await opened.aclose()

    async def _connect(self) -> WebSocket:
        url = await self._socket_url()
        account = self._account()
        stack = AsyncExitStack()
        self._socket = await stack.enter_async_context(self._http.websocket(url, allow_hosts=account.allow_hosts))
        self._open = stack
        return self._socket

    async def _socket_url(self) -> str:
        """Where Slack wants to be listened to. Raises `ToolError(ADDRESS)` if that is not at Slack."""
        account = self._app_account()
        url = str((await ask_slack(web_api(self._http, account), account, "apps.connections.open")).get("url", ""))
        scheme, _, rest = url.partition("://")
        if scheme in ("wss", "ws"):
            target = parse_target(f"{'https' if scheme == 'wss' else 'http'}://{rest}")
            is_slacks = scheme == "wss" and host_is_in_domain(target.host, "slack.com")
            if target.authority == account.base.authority if account.is_elsewhere else is_slacks:
                return url
        raise ToolError(
            ErrorCode.ADDRESS, "Slack named a place for Socket Mode that is not Slack's", "Try again later."
        )

    async def _take(self, socket: WebSocket, text: str, handle_press: HandlePress) -> None:
        try:
            envelope = mapping(json.loads(text))
        except (ValueError, RecursionError):
            return
        if envelope.get("type") == "disconnect":
            await self.stop_reading()
            return
        if isinstance(envelope.get("envelope_id"), str):
            await socket.send(json.dumps({"envelope_id": envelope["envelope_id"]}))
        payload = mapping(envelope.get("payload"))
        if envelope.get("type") != "interactive" or payload.get("type") != "block_actions":
            return
        user, container = mapping(payload.get("user")), mapping(payload.get("container"))
        for action in mappings(payload.get("actions")):
            found = _VALUE.fullmatch(str(action.get("value", "")))
            if found is not None and action.get("action_id") in _ACTIONS:
                press = ButtonPress(
                    approval=found[1],
                    digest=found[2],
                    approves=_ACTIONS[str(action["action_id"])],
                    place=str(container.get("channel_id")),
                    message=str(container.get("message_ts")),
                    user=str(user.get("id")),
                    user_name=str(user.get("name") or user.get("username") or ""),
                )
                await handle_press(press)

    async def _post(self, method: str, text: str, more: Sequence[Mapping[str, Any]], **also: str) -> Mapping[str, Any]:
        """As plain text: a call's arguments are nobody's markup. URLs in them are not fetched."""
        account = self._account()
        sections = [
            {"type": "section", "text": {"type": "plain_text", "text": part, "emoji": False}}
            for part in split_text(text, _BLOCK_UNITS)
        ]
        return await change_slack(
            web_api(self._http, account),
            account,
            method,
            channel=self._channel.channel,
            text=_escaped(text.partition("\n")[0]),
            blocks=[*sections, *more],
            **({} if method == "chat.update" else {"unfurl_links": False, "unfurl_media": False}),
            **also,
        )

    def _account(self) -> Account:
        return notify_account(SLACK, self._channel.token, self._channel.base_url, self._references)

    def _app_account(self) -> Account:
        return notify_account(SLACK, self._channel.app_token, self._channel.base_url, self._references, "app_token")


def _without_extra() -> ToolError:
    return ToolError(
        ErrorCode.NOT_CONFIGURED,
        "messages have no buttons: that needs the extra goat-mcp[slack]",
        "Run: pip install 'goat-mcp[slack]'",
    )


def _button(title: str, action: str, message: Message) -> dict[str, Any]:
    text = {"type": "plain_text", "text": title}
    return {"type": "button", "action_id": action, "text": text, "value": f"{message.approval.id}:{message.digest}"}


def _escaped(text: str) -> str:
    """For the line that notifications show: `<!channel>` would call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
