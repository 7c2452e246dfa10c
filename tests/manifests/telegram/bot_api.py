"""Telegram's Bot API as far as the tool uses it, with the wire format, limits and errors of the real one.

Source: the Bot API's documentation. Checked by hand against the library python-telegram-bot, which understands it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.web.messaging.wire_server import Asked, Said, json_said

TOKEN = "987654321:AAExample-token_of-the-tests-0123456"
CHAT = 4242
_SAME = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)


@dataclass
class BotApi:
    """One bot and its chats. `messages` are by id; `limits` are seconds that the next requests are put off by."""

    chats: set[str] = field(default_factory=lambda: {str(CHAT), "-100777", "@goats"})
    messages: dict[int, str] = field(default_factory=dict[int, str])
    sent: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    actions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    limits: list[int] = field(default_factory=list[int])
    methods: list[str] = field(default_factory=list[str])
    buttons: dict[int, list[Mapping[str, str]]] = field(default_factory=dict[int, list[Mapping[str, str]]])
    updates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    replies: dict[str, str] = field(default_factory=dict[str, str])

    def answer(self, asked: Asked) -> Said:
        prefix, _, rest = asked.path.removeprefix("/").partition("/")
        if prefix == "file":
            return self._file(rest)
        if prefix != f"bot{TOKEN}":
            return _error(401, "Unauthorized")
        self.methods.append(rest)
        if self.limits:
            seconds = self.limits.pop(0)
            return _error(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})
        method = getattr(self, f"_{rest.lower()}", None)
        return method(_read(asked.fields)) if method is not None else _error(404, "Not Found")

    def _chat(self, given: Mapping[str, Any]) -> Said | None:
        if str(given.get("chat_id", "")) == "-55":
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            return _error(400, text, {"migrate_to_chat_id": -100777})
        if str(given.get("chat_id", "")) == "13":
            return _error(403, "Forbidden: bot was blocked by the user")
        return None if str(given.get("chat_id", "")) in self.chats else _error(400, "Bad Request: chat not found")

    def _text(self, given: Mapping[str, Any]) -> Said | None:
        text = str(given.get("text", ""))
        if not text.strip():
            return _error(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > 4096:
            return _error(400, "Bad Request: message is too long")
        if given.get("parse_mode") == "HTML" and text.count("<b>") != text.count("</b>"):
            return _error(400, "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\"")
        return None

    def _sendmessage(self, given: Mapping[str, Any]) -> Said:
        if (refused := self._chat(given) or self._text(given)) is not None:
            return refused
        number = len(self.messages) + 100
        self.messages[number] = given["text"]
        self.buttons[number] = _buttons(given)
        self.sent.append(given)
        return _ok(self._message(number, given))

    def _editmessagetext(self, given: Mapping[str, Any]) -> Said:
        if (refused := self._chat(given) or self._text(given)) is not None:
            return refused
        number = int(given["message_id"])
        if number not in self.messages:
            return _error(400, "Bad Request: message to edit not found")
        if self.messages[number] == given["text"]:
            return _error(400, f"Bad Request: {_SAME}")
        self.messages[number] = given["text"]
        self.buttons[number] = _buttons(given)
        return _ok(self._message(number, given))

    def press(self, number: int, data: str, *, user: int, chat: int = CHAT) -> str:
        """A button of a message is pressed. The id of the press, which `replies` has once it is answered."""
        id = str(len(self.updates) + 1)
        sender = {"id": user, "is_bot": False, "first_name": "Heidi"}
        message = {"message_id": number, "date": 0, "chat": {"id": chat, "type": "private"}}
        query = {"id": id, "from": sender, "message": message, "chat_instance": "1", "data": data}
        self.updates.append({"update_id": 500 + len(self.updates), "callback_query": query})
        return id

    def _getupdates(self, given: Mapping[str, Any]) -> Said:
        found = [update for update in self.updates if update["update_id"] >= given.get("offset", 0)]
        return _ok(found[: given.get("limit", 100)])

    def _answercallbackquery(self, given: Mapping[str, Any]) -> Said:
        if given["callback_query_id"] in self.replies:
            return _error(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        self.replies[given["callback_query_id"]] = given["text"]
        return _ok(True)

    def _deletemessage(self, given: Mapping[str, Any]) -> Said:
        if (refused := self._chat(given)) is not None:
            return refused
        if self.messages.pop(int(given["message_id"]), None) is None:
            return _error(400, "Bad Request: message to delete not found")
        return _ok(True)

    def _setmessagereaction(self, given: Mapping[str, Any]) -> Said:
        if (refused := self._chat(given)) is not None:
            return refused
        if any(one["emoji"] not in ("👍", "🎉") for one in given.get("reaction", [])):
            return _error(400, "Bad Request: REACTION_INVALID")
        self.actions.append(given)
        return _ok(True)

    def _sendchataction(self, given: Mapping[str, Any]) -> Said:
        if (refused := self._chat(given)) is not None:
            return refused
        self.actions.append(given)
        return _ok(True)

    def _getfile(self, given: Mapping[str, Any]) -> Said:
        number = str(given.get("file_id", ""))
        if number not in self.files:
            return _error(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        place, data = self.files[number]
        size = self.sizes.get(number, len(data))
        if size > 20 * 1024 * 1024 and number not in self.sizes:
            return _error(400, "Bad Request: file is too big")
        return _ok({"file_id": number, "file_unique_id": f"u{number}", "file_size": size, "file_path": place})

    def _getme(self, given: Mapping[str, Any]) -> Said:
        return _ok({"id": 987654321, "is_bot": True, "first_name": "Goat", "username": "goat_bot"})

    def _file(self, rest: str) -> Said:
        owner, _, place = rest.partition("/")
        if owner != f"bot{TOKEN}":
            return _error(401, "Unauthorized")
        for known, data in self.files.values():
            if known == place:
                return Said(data, headers={"Content-Type": "application/octet-stream"})
        return _error(404, "Not Found")

    def _message(self, number: int, given: Mapping[str, Any]) -> dict[str, Any]:
        chat = given["chat_id"]
        chat_id = -100777 if chat == "@goats" else int(chat)
        return {
            "message_id": number,
            "from": {"id": 987654321, "is_bot": True, "first_name": "Goat", "username": "goat_bot"},
            "chat": {"id": chat_id, "type": "private" if chat_id > 0 else "supergroup", "first_name": "Heidi"},
            "date": 1760000000,
            "text": given["text"],
        }


def _buttons(given: Mapping[str, Any]) -> list[Mapping[str, str]]:
    rows = given.get("reply_markup", {}).get("inline_keyboard", [])
    found = [button for row in rows for button in row]
    assert all(len(button["callback_data"].encode()) <= 64 for button in found), "Telegram takes no more"
    return found


def _ok(result: Any) -> Said:
    return json_said({"ok": True, "result": result})


def _error(number: int, description: str, parameters: Mapping[str, Any] | None = None) -> Said:
    phrases = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 429: "Too Many Requests"}
    body: dict[str, Any] = {"ok": False, "error_code": number, "description": description}
    headers: dict[str, str] = {}
    if parameters is not None:
        body["parameters"] = parameters
        if "retry_after" in parameters:
            headers["Retry_After"] = str(parameters["retry_after"])
    return json_said(body, f"{number} {phrases[number]}", **headers)


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    """Forms hold objects as JSON in text; numbers may be either."""
    read: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, bytes):
            value = value.decode()
        read[name] = json.loads(value) if isinstance(value, str) and name in ("reaction", "reply_parameters") else value
    return read
