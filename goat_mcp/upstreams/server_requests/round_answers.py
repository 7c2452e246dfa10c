"""What an upstream is answered that wants to know more before it finishes: from us, or from the client behind the call.

Both ways of asking: `input_required` of 2026-07-28 (ERA-4, ERA-5), and error -32042 of 2025-11-25 (ERA-6). Loaded
when an upstream asks for the first time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.core.client_side import (
    CAPABILITY_MISSING,
    URL_REQUIRED,
    ClientRefused,
    ClientRequest,
    ClientSide,
    RequestNotSent,
    RootsOf,
)
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.upstreams.envelope import strip_result
from goat_mcp.upstreams.server_requests.request_handlers import (
    ELICITATION,
    KIND_OF,
    ROOTS,
    covers,
    labelled,
    required_for,
    roots_result,
)

_URL_ERRORS_SINCE = "2025-11-25"


@dataclass(frozen=True)
class RoundAnswers:
    """The dialogue of one request."""

    upstream: str
    allow: Collection[str]
    roots: RootsOf
    client: ClientSide | None

    async def to_result(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        requests = _requests(self.upstream, raw.get("inputRequests"))
        answers: dict[str, Any] = {}
        open_requests: dict[str, ClientRequest] = {}
        client_has_roots = self.client is not None and ROOTS in self.client.capabilities
        for key, request in requests.items():
            kind = KIND_OF[request.method]
            self._check_allowed(kind)
            if kind == ROOTS and client_has_roots and (roots := self.roots(True)):
                answers[key] = roots_result(roots)
            else:
                open_requests[key] = request
        if open_requests:
            answers |= await self._ask(open_requests)
        more: dict[str, Any] = {}
        if requests:
            more["inputResponses"] = {key: answers[key] for key in requests}
        if isinstance(raw.get("requestState"), str):
            more["requestState"] = raw["requestState"]
        return more

    def _check_allowed(self, kind: str) -> None:
        if kind not in self.allow:
            raise ToolError(
                ErrorCode.PERMISSION,
                f"upstream {self.upstream} asks for {kind}, which its entry does not allow",
                f'The user can allow it with "{kind}" in the list `allow` of that entry.',
            )

    async def _ask(self, requests: Mapping[str, ClientRequest]) -> dict[str, Any]:
        client = self.client
        for request in requests.values():
            required = required_for(request)
            if client is None or not covers(client.capabilities, required):
                raise self._lacks(required)
        assert client is not None
        try:
            given = await client.ask({key: labelled(self.upstream, request) for key, request in requests.items()})
        except RequestNotSent as unasked:
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {self.upstream} asks once more, which is put to nobody: {unasked.message}",
                "Use another tool.",
            ) from None
        except ClientRefused as refused:
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {self.upstream} asked the client, which refused: {refused.message[:300]}",
                "Ask the user.",
            ) from None
        return {key: strip_result(answer) for key, answer in given.items()}

    async def to_error(self, refused: UpstreamError) -> None:
        """Returns where the request can be sent again; raises otherwise."""
        client = self.client
        if refused.code == CAPABILITY_MISSING and not (client is not None and client.is_stateless):
            raise self._lacks(_member(refused.data, "requiredCapabilities")) from None
        if refused.code != URL_REQUIRED:
            raise refused
        has_urls = client is not None and covers(client.capabilities, {"elicitation": {"url": {}}})
        if client is None or not has_urls or client.protocol_version < _URL_ERRORS_SINCE:
            raise self._lacks({"elicitation": {"url": {}}}) from None
        if not client.is_stateless:
            raise refused
        self._check_allowed(ELICITATION)
        asked = {
            f"url-{number}": ClientRequest("elicitation/create", {"mode": "url", **elicitation})
            for number, elicitation in enumerate(_elicitations(refused.data), 1)
        }
        if not asked:
            raise refused
        answers = await self._ask(asked)
        if any(answer.get("action") != "accept" for answer in answers.values()):
            raise ToolError(
                ErrorCode.PERMISSION,
                f"upstream {self.upstream} wants the user to open a page first, and the user did not",
                "Ask the user.",
            )

    def _lacks(self, required: Mapping[str, Any]) -> Exception:
        names = ", ".join(_capability_names(required)) or "a capability"
        what = f"upstream {self.upstream} needs a client with {names}"
        if self.client is not None and self.client.is_stateless:
            data = {"requiredCapabilities": dict(required)}
            return UpstreamError(CAPABILITY_MISSING, f"{what}; this one declared none", data)
        return ToolError(
            ErrorCode.CAPABILITY,
            f"{what}, which this one did not declare; the call was not finished",
            "Tell the user: another MCP client can make this call, or another tool may do.",
            facts={"upstream": self.upstream, "required": dict(required)},
        )


def _requests(upstream: str, given: object) -> dict[str, ClientRequest]:
    """What an `input_required` asks for. Raises `ToolError(UPSTREAM)` for what nobody can answer."""
    requests: dict[str, ClientRequest] = {}
    items = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    for key, request in items.items():
        match request:
            case {"method": str() as method} if method in KIND_OF:
                requests[key] = ClientRequest(method, _member(request, "params"))
            case _:
                raise ToolError(
                    ErrorCode.UPSTREAM,
                    f"upstream {upstream} asks for something that MCP does not know",
                    "Use another tool.",
                )
    return requests


def _elicitations(data: Any) -> list[dict[str, Any]]:
    found: Any = cast("dict[str, Any]", data).get("elicitations") if isinstance(data, dict) else None
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def _member(data: Any, name: str) -> dict[str, Any]:
    """An object in an object; empty where there is none."""
    found: Any = cast("dict[str, Any]", data).get(name) if isinstance(data, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _capability_names(required: Mapping[str, Any]) -> list[str]:
    names: list[str] = []
    for kind, details in required.items():
        inner = list(cast("dict[str, Any]", details)) if isinstance(details, dict) else []
        names += [f"{kind}.{detail}" for detail in inner] or [kind]
    return names
