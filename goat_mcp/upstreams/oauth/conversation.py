"""One conversation with an authorization server, which a provider of the SDK leads and we send.

Here is what conversations with and without a person have in common.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError
from pydantic_core import from_json

from goat_mcp.upstreams.oauth.login_contract import LoginRefused

_MAX_CHALLENGE_CHARS = 8_000


class Memory:
    """The storage a provider sees: of one conversation."""

    def __init__(self, tokens: OAuthToken | None = None, client: OAuthClientInformationFull | None = None) -> None:
        self.tokens = tokens
        self.client = client
        self.is_new = False

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens
        self.is_new = True

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass(frozen=True)
class Granted:
    """What a conversation came to: tokens, for which client, and who gave them."""

    tokens: OAuthToken
    client: OAuthClientInformationFull
    issuer: str
    auth_server: OAuthMetadata | None = None
    protected_resource: ProtectedResourceMetadata | None = None


class Provider(Protocol):
    """Of the SDK: yields requests, and receives their responses."""

    def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]: ...


async def converse(
    provider: Provider,
    memory: Memory,
    url: str,
    challenge: str,
    scopes: str,
    send: Callable[[httpx2.Request], Awaitable[httpx2.Response]],
) -> OAuthToken:
    """The tokens that the provider gets for the upstream at `url`, which has answered 401 with `challenge`.

    Raises `LoginRefused`, and whatever `send` raises.
    """
    probe = probe_of(url)
    answer = httpx2.Response(401, headers={"www-authenticate": _asking(challenge, scopes)}, request=probe)
    with _in_our_words():
        async with contextlib.aclosing(provider.async_auth_flow(probe)) as flow:
            outgoing = await anext(flow)
            while memory.tokens is None:
                outgoing = await flow.asend(answer)
                if outgoing is not probe:
                    answer = await send(outgoing)
    return memory.tokens


def probe_of(url: str) -> httpx2.Request:
    """What the provider believes to authorise. It is never sent."""
    return httpx2.Request("POST", url, headers={"mcp-protocol-version": LATEST_HANDSHAKE_VERSION})


def _asking(challenge: str, scopes: str) -> str:
    """The challenge as the provider is to see it: with the scopes that we want."""
    wanted = {"resource_metadata": challenge_field(challenge, "resource_metadata"), "scope": scopes}
    members = ", ".join(f'{name}="{value}"' for name, value in wanted.items() if value)
    return f"Bearer {members}".strip()


def challenge_field(challenge: str, name: str) -> str:
    """A member of a `WWW-Authenticate` header; empty where it has none, or one that could not be said again."""
    found = re.search(rf'(?:^|[\s,]){name}=(?:"([^"]+)"|([^\s,"]+))', challenge[:_MAX_CHALLENGE_CHARS])
    value = (found[1] or found[2]) if found else ""
    return value if value.isascii() and value.isprintable() else ""


def error_code(answer: httpx2.Response) -> str:
    """The OAuth error in the answer of a token address; empty if there is none. Nothing else of it is shown."""
    with contextlib.suppress(ValueError):
        document: Any = from_json(answer.content)
        if isinstance(document, dict):
            said = cast("dict[str, Any]", document).get("error")
            if isinstance(said, str) and said.isascii() and said.isprintable():
                return said[:60]
    return ""


def secret_method(supported: Sequence[str] | None) -> str:
    """How a client secret is sent to a server whose metadata lists these ways; None: it says nothing (RFC 8414)."""
    return "client_secret_basic" if not supported or "client_secret_basic" in supported else "client_secret_post"


@contextlib.contextmanager
def _in_our_words() -> Generator[None]:
    try:
        yield
    except OAuthFlowError as problem:
        raise LoginRefused(str(problem)[:500]) from None
    except ValidationError as problem:
        raise LoginRefused(f"its authorization server answered with what cannot be read: {problem.title}") from None
