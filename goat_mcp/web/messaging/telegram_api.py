"""Telegram's Bot API: what an account looks like, and one call of a method.

Source: the Bot API's documentation ("Making requests").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import mapping
from goat_mcp.web.messaging.bot_api import Account, Service, WebApi

_CHAT = re.compile(r"-?[1-9][0-9]{0,18}|@[A-Za-z0-9_]{1,64}")
_JSON = {"content-type": "application/json"}


def _same_chat(chat: object) -> str:
    text = str(int(chat)) if isinstance(chat, int | float) else str(chat).strip()
    if not _CHAT.fullmatch(text):
        raise ToolError(
            ErrorCode.INPUT, f"chatId {text[:80]!r} is no chat", "Send its number, or the @name of a public one."
        )
    return text


TELEGRAM = Service(
    name="Telegram",
    resource="telegram",
    base_url="https://api.telegram.org",
    token=re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{8,200}"),
    variable="TELEGRAM_BOT_TOKEN",
    chats="chats",
    same_chat=_same_chat,
)


async def call_telegram(api: WebApi, account: Account, method: str, **parameters: Any) -> Any:
    """The `result` of a method. Raises `ToolError`."""
    url = f"{account.base_url}/bot{account.token}/{method}"
    answer = await api.post(method, url, json.dumps(parameters, ensure_ascii=False).encode(), _JSON)
    if answer.get("ok") is not True:
        raise telegram_refusal(method, answer)
    return answer.get("result")


def telegram_refusal(method: str, answer: Mapping[str, Any]) -> ToolError:
    """From `{ok: false, error_code, description, parameters}`."""
    description = str(answer.get("description", "no reason given"))[:500]
    number: Any = answer.get("error_code")
    moved_to = mapping(answer.get("parameters")).get("migrate_to_chat_id")
    facts: dict[str, Any] = {"telegram_error_code": number, **({"migrate_to_chat_id": moved_to} if moved_to else {})}
    code = ErrorCode.TOOL
    if moved_to:
        advice = f"The group has become another chat: use chatId {moved_to}."
    elif number in (401, 404) and description.lower().startswith(("unauthorized", "not found")):
        code, advice = ErrorCode.AUTH, "Tell the user: Telegram does not know the bot's token."
    elif number == 403:
        advice = "The bot may not write there: somebody has to start it, or to let it into the chat."
    elif "can't parse entities" in description:
        advice = "Escape the characters that parseMode reserves, or send it without parseMode."
    elif "not modified" in description:
        code, advice = ErrorCode.NO_CHANGE, "The message says so already."
    else:
        advice = "Check chatId and messageId."
    return ToolError(code, f"Telegram refused {method}: {description}", advice, facts=facts)
