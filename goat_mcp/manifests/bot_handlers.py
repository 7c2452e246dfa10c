"""The handlers of the shipped messengers' tools: each call is one method of a bot, made for it from the user's account.

What the methods send is each messenger's own; accounts, files and texts are in `goat_mcp.web.messaging`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.web.messaging.bot_api import Account, Service, WebApi, read_account


class Bot(ABC):
    """The bot, for one call. Each messenger has its own."""

    service: ClassVar[Service]

    def __init__(self, host: Host, ctx: HandlerContext, account: Account) -> None:
        self.host = host
        self.ctx = ctx
        self.account = account
        self.api = WebApi(host.http, account, ctx.call)

    @abstractmethod
    def chat(self, input: Mapping[str, Any]) -> str:
        """The chat that a call is about, as the messenger is told it. Raises `ToolError` for one not to be used."""


BotT = TypeVar("BotT", bound=Bot)
Method = Callable[[BotT, str, Mapping[str, Any]], Awaitable[Any]]
"""One export: of the bot, for a chat that may be used, with the call's input."""


def bot_handlers(host: Host, bot: type[BotT], methods: Mapping[str, Method[BotT]]) -> Mapping[str, Handler]:
    """A handler for each of `methods`, which are named as the exports are."""

    def handler(method: Method[BotT]) -> Handler:
        async def handle(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
            one = bot(host, ctx, read_account(bot.service, ctx.config, host.references))
            chat = one.chat(input)
            return await method(one, chat, input)

        return handle

    return {name: handler(method) for name, method in methods.items()}
