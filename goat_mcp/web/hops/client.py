"""Sends requests to other replicas, and hands on what they answer piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.web.hops.signature import Hop, HopKeys, sha256
from goat_mcp.web.hops.spans import leaving

if TYPE_CHECKING:  # loaded with the first hop
    import httpx2

HOP_HEADER = "goat-hop"
HOP_REFUSED_HEADER = "x-goat-mcp-hop-refused"
"""In the answer to a hop that was not accepted: nothing of the request has been run."""
HOP_PREFIX = "/replica"
"""In front of the path of a hop. Nothing that comes from outside has to get there."""
CONNECT_S = 3.0
WRITE_S = 30.0
KEPT_OPEN_S = 2.0
"""Less than the server keeps an idle connection: a request must not meet its end."""


class ReplicaUnreachable(ToolError):
    """Nothing of the request has reached the other replica. `is_refused`: nobody listens at its address."""

    def __init__(self, replica: Replica, problem: str, *, is_refused: bool) -> None:
        super().__init__(
            ErrorCode.NETWORK,
            f"the replica {replica.name} cannot be reached at {replica.url}: {problem}",
            "Nothing was run. Try again in some seconds.",
        )
        self.is_refused = is_refused


class ReplicaLost(ToolError):
    """The other replica got the request and did not answer it to its end."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(
            ErrorCode.OUTCOME_UNKNOWN,
            f"the replica {replica.name}, which ran this call, has ended",
            "The call may have taken effect. Look before you call again.",
        )


class HopClient:
    """`me` is this replica as it is registered now."""

    def __init__(self, keys: HopKeys, me: Callable[[], Replica]) -> None:
        self._keys = keys
        self._me = me
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def send(
        self,
        to: Replica,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        principal: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[httpx2.Response]:
        """The answer, whose body is still to come. `path` is what follows `HOP_PREFIX`.

        Raises `ReplicaUnreachable` or `ReplicaLost`, the latter also while the body is read.
        """
        with leaving(to.name, headers) as traced:
            async with self._sent(to, method, path, headers=traced, body=body, principal=principal) as response:
                yield response

    @asynccontextmanager
    async def _sent(
        self,
        to: Replica,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes,
        principal: Mapping[str, Any] | None,
    ) -> AsyncGenerator[httpx2.Response]:
        import httpx2

        hop = Hop(method, path, headers, sha256(body), principal, self._me().name, to.name, to.fence)
        request = self._open().build_request(
            method, f"{to.url}{HOP_PREFIX}{path}", headers={HOP_HEADER: self._keys.seal(hop)}, content=body
        )
        try:
            response = await self._open().send(request, stream=True)
        except httpx2.ConnectError as refused:
            raise ReplicaUnreachable(to, "connection refused", is_refused=_is_refused(refused)) from None
        except (httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise ReplicaUnreachable(to, f"no answer within {CONNECT_S:.0f} s", is_refused=False) from None
        except httpx2.TransportError:
            raise ReplicaLost(to) from None
        if response.status_code == 403 and HOP_REFUSED_HEADER in response.headers:
            await response.aclose()
            raise ReplicaUnreachable(
                to, "it takes this replica for another one, or has just registered anew", is_refused=False
            )
        try:
            yield response
        except httpx2.TransportError:
            raise ReplicaLost(to) from None
        finally:
            await response.aclose()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(None, connect=CONNECT_S, write=WRITE_S),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=KEPT_OPEN_S),
                trust_env=False,  # a proxy of the environment is for the world outside
            )
        return self._client


def _is_refused(problem: BaseException) -> bool:
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
