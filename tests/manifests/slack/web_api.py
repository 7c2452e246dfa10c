"""Slack's Web API as far as the tool uses it, with the wire format and errors of the real one.

Source: Slack's documentation of the Web API. Checked by hand against the library slack_sdk, which understands it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.web.messaging.wire_server import Asked, Said, json_said

TOKEN = "xoxb-0123456789-ExampleTokenOfTheTests"
CHANNEL = "C0123456789"
_TAKE_NO_JSON = ("conversations.history", "conversations.replies", "files.info")
FILE = {
    "id": "F1",
    "name": "goat.png",
    "mimetype": "image/png",
    "channels": [CHANNEL],
    "groups": list[str](),
    "ims": list[str](),
    "mode": "hosted",
    "is_external": False,
}


@dataclass
class SlackApi:
    """One workspace with the bot in one channel. `messages` are the channel's, newest first; `threads` by their ts."""

    base: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    threads: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    reactions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    files: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    bodies: dict[str, bytes] = field(default_factory=dict[str, bytes])
    limits: list[int] = field(default_factory=list[int])
    methods: list[str] = field(default_factory=list[str])
    scopes: tuple[str, ...] = ("files:read",)

    def answer(self, asked: Asked) -> Said:
        is_known = asked.headers.get("authorization") == f"Bearer {TOKEN}"
        if asked.path.startswith("/files-pri/"):
            return self._file(asked.path, is_known)
        method = asked.path.removeprefix("/api/")
        self.methods.append(method)
        if self.limits:
            # Slack's own body of a 429.
            return json_said(
                {"ok": False, "error": "ratelimited"}, "429 Too Many Requests", Retry_After=str(self.limits.pop(0))
            )
        if not is_known:
            return _error("invalid_auth" if "authorization" in asked.headers else "not_authed")
        if method in _TAKE_NO_JSON and asked.headers.get("content-type", "").startswith("application/json"):
            return _error("invalid_arguments", messages=["[ERROR] missing required field: channel"])
        given = asked.fields
        if "channel" in given and given["channel"] != CHANNEL:
            return _error("channel_not_found")
        handler = getattr(self, "_" + method.replace(".", "_").lower(), None)
        return handler(given) if handler is not None else _error("unknown_method")

    def _chat_postmessage(self, given: Mapping[str, Any]) -> Said:
        if not given.get("text"):
            return _error("no_text")
        if len(given["text"]) > 4000:
            return _error("msg_too_long")
        message = {
            "type": "message",
            "user": "U0BOT",
            "bot_id": "B01",
            "text": given["text"],
            "ts": f"1700000000.{len(self.messages):06}",
            **{name: given[name] for name in ("thread_ts", "blocks") if name in given},
        }
        self.messages.insert(0, message)
        return json_said({"ok": True, "channel": CHANNEL, "ts": message["ts"], "message": message})

    def _chat_update(self, given: Mapping[str, Any]) -> Said:
        for message in self.messages:
            if message["ts"] == given["ts"]:
                if message.get("bot_id") != "B01":
                    return _error("cant_update_message")
                message |= {name: given[name] for name in ("text", "blocks") if name in given}
                return json_said({"ok": True, "channel": CHANNEL, "ts": given["ts"], "text": given["text"]})
        return _error("message_not_found")

    def _chat_delete(self, given: Mapping[str, Any]) -> Said:
        kept = [message for message in self.messages if message["ts"] != given["ts"]]
        if len(kept) == len(self.messages):
            return _error("message_not_found")
        self.messages[:] = kept
        return json_said({"ok": True, "channel": CHANNEL, "ts": given["ts"]})

    def _reactions_add(self, given: Mapping[str, Any]) -> Said:
        if given["name"] not in ("thumbsup", "tada"):
            return _error("invalid_name")
        if given in self.reactions:
            return _error("already_reacted")
        self.reactions.append(given)
        return json_said({"ok": True})

    def _conversations_history(self, given: Mapping[str, Any]) -> Said:
        found = self.messages
        if "oldest" in given:
            found = [one for one in found if given["oldest"] <= one["ts"] <= given["latest"]]
        return _page(found, given)

    def _conversations_replies(self, given: Mapping[str, Any]) -> Said:
        if given["ts"] not in self.threads:
            return _error("thread_not_found")
        return _page(self.threads[given["ts"]], given)

    def _files_info(self, given: Mapping[str, Any]) -> Said:
        if given["file"] not in self.files:
            return _error("file_not_found")
        return json_said(
            {"ok": True, "file": self.files[given["file"]], "comments": [], "response_metadata": {"next_cursor": ""}}
        )

    def _auth_test(self, given: Mapping[str, Any]) -> Said:
        return json_said(
            {"ok": True, "url": "https://goats.slack.com/", "team": "Goats", "user": "goat", "bot_id": "B01"}
        )

    def _file(self, path: str, is_known: bool) -> Said:
        if not is_known or "files:read" not in self.scopes:
            return Said(b"<!DOCTYPE html><title>Slack</title>", headers={"Content-Type": "text/html; charset=utf-8"})
        data = self.bodies.get(path.rpartition("/")[2])
        if data is None:
            return Said(b"", "404 Not Found", {"Content-Type": "text/html"})
        return Said(data, headers={"Content-Type": "image/png"})


def _page(found: list[dict[str, Any]], given: Mapping[str, Any]) -> Said:
    try:
        start = int(base64.b64decode(given.get("cursor", ""), validate=True).decode() or "0")
    except ValueError:
        return _error("invalid_cursor")
    end = start + int(given["limit"])
    has_more = end < len(found)
    following = base64.b64encode(str(end).encode()).decode() if has_more else ""
    return json_said(
        {
            "ok": True,
            "messages": found[start:end],
            "has_more": has_more,
            "response_metadata": {"next_cursor": following},
        }
    )


def _error(code: str, messages: list[str] | None = None, **more: str) -> Said:
    """Slack answers nearly every error with 200."""
    body: dict[str, Any] = {"ok": False, "error": code, **more}
    if messages is not None:
        body["response_metadata"] = {"messages": messages}
    return json_said(body)
