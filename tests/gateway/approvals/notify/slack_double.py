"""Slack as approvals use it: the Web API with buttons, and Socket Mode on the same port.

Source: Slack's documentation (Socket Mode, block_actions payloads). The WebSocket side is wsproto's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Pong, Request, TextMessage

from tests.manifests.slack.web_api import CHANNEL, TOKEN, SlackApi
from tests.web.messaging.wire_server import Asked, Said, WireServer, answering, json_said

APP_TOKEN = "xapp-1-A0123-456-ExampleAppTokenOfTheTests"


@dataclass
class Connection:
    frames: WSConnection
    writer: asyncio.StreamWriter
    acknowledged: list[str] = field(default_factory=list[str])
    pongs: int = 0

    async def say(self, *events: Any) -> None:
        self.writer.write(b"".join(self.frames.send(event) for event in events))
        await self.writer.drain()


class SlackWorkspace(SlackApi):
    """`connections` are those of Socket Mode, open ones; `url` is what `apps.connections.open` names, if not itself."""

    def __init__(self) -> None:
        super().__init__()
        self.wire: WireServer | None = None
        self.connections: list[Connection] = []
        self.url = ""
        self.opened = 0

    def answer_all(self, asked: Asked) -> Said:
        if asked.path.endswith("/apps.connections.open"):
            if asked.headers.get("authorization") != f"Bearer {APP_TOKEN}":
                return json_said({"ok": False, "error": "invalid_auth"})
            assert self.wire is not None
            return json_said(
                {"ok": True, "url": self.url or f"ws://127.0.0.1:{self.wire.port}/link?ticket=t1&app_id=A1"}
            )
        return self.answer(asked)

    async def upgrade(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.wire is not None and asked.fields["ticket"] == "t1"
        self.opened += 1
        frames = WSConnection(ConnectionType.SERVER)
        frames.receive_data(self.wire.raw[-1])
        (request,) = frames.events()
        assert isinstance(request, Request)
        connection = Connection(frames, writer)
        await connection.say(AcceptConnection(), TextMessage(data=json.dumps({"type": "hello", "num_connections": 1})))
        self.connections.append(connection)
        try:
            while data := await reader.read(65_536):
                frames.receive_data(data)
                for event in frames.events():
                    if isinstance(event, TextMessage):
                        connection.acknowledged.append(json.loads(event.data)["envelope_id"])
                    elif isinstance(event, Pong):
                        connection.pongs += 1
                    elif isinstance(event, CloseConnection):
                        return
        finally:
            self.connections.remove(connection)
            writer.close()

    async def press(self, ts: str, action: dict[str, Any], *, user: str, channel: str = CHANNEL) -> None:
        """To one of the connections, in two frames, as Slack may."""
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": "heidi", "name": "heidi", "team_id": "T1"},
            "container": {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": False},
            "channel": {"id": channel, "name": "approvals"},
            "actions": [{"type": "button", "block_id": "b1", "action_ts": "1.1", **action}],
        }
        envelope = {"envelope_id": f"e{ts}", "type": "interactive", "accepts_response_payload": False}
        text = json.dumps({**envelope, "payload": payload})
        first, rest = TextMessage(data=text[:50], message_finished=False), TextMessage(data=text[50:])
        await self.connections[-1].say(first, Ping(payload=b"alive"), rest)

    def buttons(self, ts: str) -> list[dict[str, Any]]:
        (message,) = [one for one in self.messages if one["ts"] == ts]
        return [button for block in message["blocks"] if block["type"] == "actions" for button in block["elements"]]

    def shown(self, ts: str) -> str:
        (message,) = [one for one in self.messages if one["ts"] == ts]
        sections = [block["text"] for block in message["blocks"] if block["type"] == "section"]
        assert all(one["type"] == "plain_text" and len(one["text"]) <= 3000 for one in sections), "Slack takes no more"
        return "\n".join(one["text"] for one in sections)


@asynccontextmanager
async def slack_workspace() -> AsyncGenerator[tuple[SlackWorkspace, dict[str, Any]]]:
    """It, and the entry of `approval.notify` that leads to it, without its user."""
    slack = SlackWorkspace()
    async with answering(slack.answer_all) as wire:
        slack.wire, wire.upgrade = wire, slack.upgrade
        entry = {"token": TOKEN, "app_token": APP_TOKEN, "channel": CHANNEL, "base_url": f"{wire.url}/api"}
        yield slack, entry
