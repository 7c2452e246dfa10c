"""What an upstream may ask of a client, what we declare to it for that (ERA-3, R-UP-8), and the answers in rounds.

Both ways of asking in an answer are handled here: `input_required` of 2026-07-28 (ERA-4, ERA-5) and error -32042 of
2025-11-25 (ERA-6). Requests of the handshake era are answered by `callers`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goat_mcp.catalog.schemas.visible_schema import visible_entry
from goat_mcp.core.calling_client import (
    CAPABILITY_MISSING,
    URL_REQUIRED,
    CallingClient,
    ClientRefused,
    ClientRequest,
    RequestNotSent,
    RootsOf,
)
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.upstreams.envelope import passing_meta, strip_result

ELICITATION, SAMPLING, ROOTS = "elicitation", "sampling", "roots"
_INVALID_PARAMS = -32602
KIND_OF = {"elicitation/create": ELICITATION, "sampling/createMessage": SAMPLING, "roots/list": ROOTS}


def declared_for(client: Mapping[str, Any], allow: Collection[str]) -> dict[str, Any]:
    """The capabilities an upstream is told of: what this client can do and the user lets upstreams ask for.

    Roots, too, only where the client has some, whoever answers for it: some servers trust them more than the folders
    in their own arguments.
    """
    declared = {kind: client[kind] for kind in (ELICITATION, SAMPLING) if kind in allow and kind in client}
    if ROOTS in allow and ROOTS in client:
        tells = isinstance(client[ROOTS], Mapping) and client[ROOTS].get("listChanged") is True
        declared[ROOTS] = {"listChanged": True} if tells else {}
    return declared


def required_for(request: ClientRequest) -> dict[str, Any]:
    """The capability a client needs to answer; empty for a request that no client answers."""
    kind = KIND_OF.get(request.method)
    if kind == ELICITATION:
        return {ELICITATION: {"url" if request.params.get("mode") == "url" else "form": {}}}
    if kind == SAMPLING:
        wants_tools = request.params.get("tools") or request.params.get("toolChoice")
        return {SAMPLING: {"tools": {}} if wants_tools else {}}
    return {} if kind is None else {kind: {}}


def covers(declared: Mapping[str, Any], required: Mapping[str, Any]) -> bool:
    """Whether what was declared is enough. A bare `elicitation: {}` means forms."""
    for kind, details in required.items():
        have = declared.get(kind)
        if not isinstance(have, Mapping):
            return False
        for detail in details:
            bare_form = kind == ELICITATION and detail == "form" and not have
            if detail not in have and not bare_form:
                return False
    return bool(required)


def labelled(upstream: str, request: ClientRequest) -> ClientRequest:
    """The request as the client gets it: without what belongs to the hop, a question with its author in front.

    Texts of a question are made visible. Raises `RequestNotSent` for one whose data hides something (R-UP-7b).
    """
    params = {key: value for key, value in request.params.items() if key != "_meta"}
    if meta := passing_meta(request.params.get("_meta")):
        params["_meta"] = meta
    if request.method == "elicitation/create":
        params = _visible(params)
        params["message"] = f"{upstream}: {params.get('message', '')}"
    return ClientRequest(request.method, params)


def _visible(params: Mapping[str, Any]) -> dict[str, Any]:
    try:
        shown, hidden, _ = visible_entry(params, schemas=("requestedSchema",), data=("url", "elicitationId", "mode"))
    except RecursionError:
        raise RequestNotSent(_INVALID_PARAMS, "the question is nested too deeply") from None
    if hidden:
        where = next(iter(hidden.values()))
        raise RequestNotSent(_INVALID_PARAMS, f"the {where} of the question holds invisible characters")
    return shown


def roots_result(roots: Sequence[Path]) -> dict[str, Any]:
    """The answer to `roots/list`, where we know it ourselves (ERA-6)."""
    return {"roots": [{"uri": root.as_uri(), "name": root.name or str(root)} for root in roots]}


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def is_wanted(level: object, least: str) -> bool:
    """Whether a message of `level` is to be told to whoever wants `least` and above; nothing is where it is empty."""
    return level in LEVELS and least in LEVELS and LEVELS.index(str(level)) >= LEVELS.index(least)


def more_verbose(one: str, other: str) -> bool:
    """Whether `one` lets more through than `other`."""
    return one in LEVELS and (other not in LEVELS or LEVELS.index(one) < LEVELS.index(other))


_URL_ERRORS_SINCE = "2025-11-25"


@dataclass(frozen=True)
class RoundAnswers:
    """The dialogue of one request."""

    upstream: str
    allow: Collection[str]
    roots: RootsOf
    client: CallingClient | None

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
