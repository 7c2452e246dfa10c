"""telegram: six methods of Telegram's Bot API, as a bot that the user configured.

Source: tools.md, section 3; the Bot API's documentation ("Making requests", "Available methods").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import mapping
from goat_mcp.core.result import ToolResult
from goat_mcp.manifests.bot_handlers import Bot, bot_handlers
from goat_mcp.manifests.handler_api import Handler, Host
from goat_mcp.web.messaging.bot_api import MAX_BYTES, NewFile, too_large
from goat_mcp.web.messaging.telegram_api import TELEGRAM, call_telegram, telegram_refusal
from goat_mcp.web.messaging.text_parts import OF_TELEGRAM, plain, send_each, split_text, utf16_length

MAX_UNITS = 4096


def build_handlers(host: Host) -> Mapping[str, Handler]:
    """A handler for each export."""
    methods = {
        "send": send,
        "edit": edit,
        "delete": delete,
        "react": react,
        "setChatAction": set_chat_action,
        "downloadFile": download_file,
    }
    return bot_handlers(host, TelegramBot, methods)


class TelegramBot(Bot):
    service = TELEGRAM

    def chat(self, input: Mapping[str, Any]) -> str:
        if "chatId" in input:
            return self.account.check_chat(input["chatId"])
        # Of a download. Nothing of a file's id, or of what Telegram says about it, tells which chat it was sent to.
        self.account.check_no_chat_is_needed("chatId", "the chat in which the file was sent")
        return ""

    async def call(self, method: str, **parameters: Any) -> Any:
        """The `result` of a method. Raises `ToolError`."""
        return await call_telegram(self.api, self.account, method, **parameters)


async def send(bot: TelegramBot, chat: str, input: Mapping[str, Any]) -> Any:
    if not input["text"].strip():
        raise ToolError(ErrorCode.INPUT, "text: holds nothing but blanks", "Send some text.")
    mode = _mode(input)
    answers: dict[str, Any] = {"reply_parameters": {"message_id": input["messageId"]}} if "messageId" in input else {}

    async def send_one(part: str, is_first: bool) -> int:
        more = answers if is_first else {}
        return _message_id(await bot.call("sendMessage", chat_id=chat, text=part, **mode, **more))

    parts = split_text(input["text"], MAX_UNITS, OF_TELEGRAM.get(input.get("parseMode", ""), plain))
    return {"chatId": chat, "messageIds": await send_each(parts, send_one, "messageIds")}


async def edit(bot: TelegramBot, chat: str, input: Mapping[str, Any]) -> Any:
    # With markup only Telegram knows how long it is: tags do not count.
    if "parseMode" not in input and (units := utf16_length(input["text"])) > MAX_UNITS:
        raise ToolError(
            ErrorCode.INPUT,
            f"text has {units} characters, and a message at most {MAX_UNITS:,}",
            "Send the rest as another message.",
        )
    await bot.call("editMessageText", chat_id=chat, **_message(input), text=input["text"], **_mode(input))
    return {"chatId": chat, "messageId": input["messageId"]}


async def delete(bot: TelegramBot, chat: str, input: Mapping[str, Any]) -> Any:
    await bot.call("deleteMessage", chat_id=chat, **_message(input))
    return {"chatId": chat, "messageId": input["messageId"]}


async def react(bot: TelegramBot, chat: str, input: Mapping[str, Any]) -> Any:
    emoji = input.get("emoji", "").strip()
    reaction = [{"type": "emoji", "emoji": emoji}] if emoji else []
    await bot.call("setMessageReaction", chat_id=chat, **_message(input), reaction=reaction)
    return {"chatId": chat, "messageId": input["messageId"]}


async def set_chat_action(bot: TelegramBot, chat: str, input: Mapping[str, Any]) -> Any:
    await bot.call("sendChatAction", chat_id=chat, action=input.get("action", "typing"))
    return {"chatId": chat}


async def download_file(bot: TelegramBot, chat: str, input: Mapping[str, Any]) -> ToolResult:
    file = NewFile(bot.host.workspace, bot.host.tool("Write").changes, input["path"])
    await file.check()
    found = mapping(await bot.call("getFile", file_id=input["fileId"]))
    size = found.get("file_size")
    if isinstance(size, int) and size > MAX_BYTES:
        raise too_large("Telegram", "the file", size)
    url = f"{bot.account.base_url}/file/bot{bot.account.token}/{_place(found)}"
    answer = await bot.api.get("file download", url, {}, MAX_BYTES)
    if answer.status != 200:
        raise telegram_refusal("file download", bot.api.as_json("file download", answer))
    if answer.truncated:
        raise too_large("Telegram", "the file", None)
    return await file.save(answer.body, bot.ctx.call, "telegram__downloadFile", {"fileId": input["fileId"]})


def _mode(input: Mapping[str, Any]) -> dict[str, str]:
    return {"parse_mode": input["parseMode"]} if "parseMode" in input else {}


def _message(input: Mapping[str, Any]) -> dict[str, int]:
    return {"message_id": input["messageId"]}


def _message_id(result: Any) -> int:
    try:
        return int(result["message_id"])
    except (TypeError, LookupError, ValueError):
        raise ToolError(
            ErrorCode.NETWORK, "Telegram answered sendMessage without a message", "Look whether it was sent."
        ) from None


def _place(found: Mapping[str, Any]) -> str:
    """`file_path` of an answer to getFile, as a part of a URL."""
    place = found.get("file_path")
    names = place.split("/") if isinstance(place, str) else []
    if not names or any(name in ("", ".", "..") for name in names):
        raise ToolError(
            ErrorCode.NETWORK,
            "Telegram names no file to download (a server of one's own in local mode keeps files to itself)",
            "Tell the user: the Bot API server must not run with --local.",
        )
    return quote("/".join(names))
