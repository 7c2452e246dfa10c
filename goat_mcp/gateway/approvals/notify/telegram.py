"""Telegram: a message with two buttons, and what is pressed, read by long polling.

Source: the Bot API's documentation (getUpdates, InlineKeyboardButton, CallbackQuery). `callback_data` comes from a
client and proves nothing; `from` comes from Telegram.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread

from goat_mcp.calls.approvals.options import TelegramChat
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import mapping, mappings
from goat_mcp.gateway.approvals.notify.accounts import notify_account, web_api
from goat_mcp.gateway.approvals.notify.channel import FOLDER, TEST_TEXT, ButtonPress, HandlePress
from goat_mcp.gateway.approvals.notify.message import Message
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import write_private
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http import HttpClient
from goat_mcp.web.messaging.bot_api import Account
from goat_mcp.web.messaging.telegram_api import TELEGRAM, call_telegram

POLL_S = 10
_UPDATES_AT_ONCE = 20
_MAX_ANSWER_CHARS = 200
_DATA = re.compile(r"([ad]):([0-9a-f]{32}):([0-9a-f]{12})")
_NO_PREVIEW = {"is_disabled": True}
"""Telegram would fetch the URLs in the arguments of a call."""


class TelegramMessenger:
    name = "telegram"

    def __init__(
        self, chat: TelegramChat, http: HttpClient, references: SecretReferences, state: StateDirectory
    ) -> None:
        self._chat = chat
        self._http = http
        self._references = references
        self._state = state
        self.place, self.user = str(chat.chat), str(chat.user)
        self.key = f"telegram {chat.chat} {chat.user}"

    @property
    def account(self) -> str:
        """The bot's number, which is no secret."""
        return f"telegram-{self._account().token.partition(':')[0]}"

    async def send(self, message: Message) -> str:
        buttons = [_button("Deny", "d", message)]
        if message.may_approve:
            buttons.insert(0, _button("Approve once", "a", message))
        return await self._send(message.asking, {"inline_keyboard": [buttons]})

    async def send_test(self) -> None:
        await self._send(TEST_TEXT, None)

    async def check(self) -> None:
        await self._call("getMe")

    async def edit(self, id: str, text: str) -> None:
        try:
            await self._call(
                "editMessageText",
                chat_id=self._chat.chat,
                message_id=int(id),
                text=text,
                link_preview_options=_NO_PREVIEW,
            )
        except ToolError as failed:
            if failed.code is not ErrorCode.NO_CHANGE:
                raise

    async def read_answers(self, handle_press: HandlePress) -> None:
        offset = await anyio.to_thread.run_sync(self._read_offset)
        wanted: dict[str, Any] = {"timeout": POLL_S, "limit": _UPDATES_AT_ONCE, "allowed_updates": ["callback_query"]}
        updates = mappings(await self._call("getUpdates", **wanted, **({"offset": offset} if offset else {})))
        numbers = [update["update_id"] for update in updates if isinstance(update.get("update_id"), int)]
        for update in updates:
            await self._answer(mapping(update.get("callback_query")), handle_press)
        if numbers:
            await anyio.to_thread.run_sync(self._keep_offset, max(numbers) + 1)

    async def stop_reading(self) -> None:
        """Nothing is held between two polls."""

    async def _answer(self, query: Mapping[str, Any], handle_press: HandlePress) -> None:
        found = _DATA.fullmatch(str(query.get("data", "")))
        if "id" not in query:
            return
        sender, message = mapping(query.get("from")), mapping(query.get("message"))
        said = "This button is not goat-mcp's."
        if found is not None:
            press = ButtonPress(
                approval=found[2],
                digest=found[3],
                approves=found[1] == "a",
                place=str(mapping(message.get("chat")).get("id")),
                message=str(message.get("message_id")),
                user=str(sender.get("id")),
                user_name=str(sender.get("first_name") or sender.get("username") or ""),
            )
            said = await handle_press(press)
        try:
            await self._call("answerCallbackQuery", callback_query_id=query["id"], text=said[:_MAX_ANSWER_CHARS])
        except ToolError as failed:
            # Too late for a reply, mostly. What was decided stands, and the message will say it.
            if failed.code is not ErrorCode.TOOL:
                raise

    async def _send(self, text: str, keyboard: Mapping[str, Any] | None) -> str:
        markup = {} if keyboard is None else {"reply_markup": keyboard}
        sent = await self._call(
            "sendMessage", chat_id=self._chat.chat, text=text, link_preview_options=_NO_PREVIEW, **markup
        )
        number = mapping(sent).get("message_id")
        if not isinstance(number, int):
            raise ToolError(ErrorCode.NETWORK, "Telegram answered sendMessage without a message", "Look at the chat.")
        return str(number)

    async def _call(self, method: str, **parameters: Any) -> Any:
        account = self._account()
        return await call_telegram(web_api(self._http, account), account, method, **parameters)

    def _account(self) -> Account:
        return notify_account(TELEGRAM, self._chat.token, self._chat.base_url, self._references)

    def _offset_file(self) -> Path:
        return self._state.folder(FOLDER) / f"{self.account}.json"

    def _read_offset(self) -> int | None:
        try:
            found: Any = json.loads(self._offset_file().read_bytes())["offset"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return found if isinstance(found, int) else None

    def _keep_offset(self, offset: int) -> None:
        write_private(self._offset_file(), json.dumps({"offset": offset}).encode(), synced=False)


def _button(title: str, letter: str, message: Message) -> dict[str, str]:
    return {"text": title, "callback_data": f"{letter}:{message.approval.id}:{message.digest}"}
