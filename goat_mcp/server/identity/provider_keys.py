"""The public keys of the OpenID provider: found through its metadata, kept, and asked for again when they change.

Starting needs no provider. If it cannot be reached later, keys that were read count for `KEPT_S` more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic_core import from_json

from goat_mcp.core.errors import ToolError
from goat_mcp.server.identity.challenge import RefusedToken, UncheckedToken
from goat_mcp.settings.identity import IdentitySettings
from goat_mcp.state.database import Warn
from goat_mcp.state.private_file import no_warning
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:  # loaded with the first token
    from jwt import PyJWK

REFRESH_S = 600.0
"""After this long they are read again, while those at hand still count."""
KEPT_S = 3600.0
"""For how long keys count whose provider cannot be reached any more."""
BETWEEN_READS_S = 5.0
"""However many tokens name unknown keys, the provider is not asked more often."""
TIMEOUT_S = 5.0
_MAX_BYTES = 512 * 1024
_MAX_KEYS = 100
_MIN_RSA_BITS = 2048
_CURVES = {"ES256": ("EC", "P-256"), "ES384": ("EC", "P-384"), "ES512": ("EC", "P-521"), "EdDSA": ("OKP", "Ed25519")}


class _Unreadable(Exception):
    """What the provider answered cannot be used."""


@dataclass(eq=False)
class ProviderKey:
    """One key of the provider's set."""

    members: Mapping[str, Any]
    _loaded: dict[str, PyJWK] = field(default_factory=dict[str, "PyJWK"])

    @property
    def key_id(self) -> str | None:
        return self.members.get("kid")

    def fits(self, algorithm: str) -> bool:
        """Whether it is a key for signatures of this algorithm, and long enough."""
        members = self.members
        if members.get("use", "sig") != "sig" or members.get("alg", algorithm) != algorithm:
            return False
        if isinstance(operations := members.get("key_ops"), list) and "verify" not in operations:
            return False
        if algorithm in _CURVES:
            return (members.get("kty"), members.get("crv")) == _CURVES[algorithm]
        # Four characters are three bytes, with no padding.
        return members.get("kty") == "RSA" and len(str(members.get("n", ""))) * 6 >= _MIN_RSA_BITS

    def loaded(self, algorithm: str) -> PyJWK:
        """Raises `RefusedToken` for a key that is broken."""
        from jwt import PyJWK, PyJWTError

        if (key := self._loaded.get(algorithm)) is None:
            try:
                key = self._loaded[algorithm] = PyJWK.from_dict(dict(self.members), algorithm)
            except (PyJWTError, ValueError, TypeError):
                raise RefusedToken("the key that the token names cannot be used") from None
        return key


class ProviderKeys:
    """Of the one issuer that the settings name."""

    def __init__(
        self,
        identity: IdentitySettings,
        http: HttpClient,
        warn: Warn = no_warning,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._identity = identity
        self._http = http
        self._warn = warn
        self._clock = clock
        self._keys: Sequence[ProviderKey] = ()
        self._read_s = self._tried_s = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self.problem = ""
        """Why they could not be read the last time."""
        self.generation = 0
        """Counts changes of the set: what was checked with an earlier one is checked again."""

    @property
    def is_reading(self) -> bool:
        return self._reading is not None

    @property
    def are_current(self) -> bool:
        """Whether the keys at hand still count. Has them read again if it is time, and does not wait for that."""
        age_s = self._clock() - self._read_s
        if age_s >= REFRESH_S:
            self._start_reading()
        return age_s < KEPT_S

    async def key(self, key_id: str | None, algorithm: str) -> PyJWK:
        """The key of a token. Raises `RefusedToken`, and `UncheckedToken` if the provider has given no keys yet."""
        if not self.are_current:
            await self._read()
            if not self.are_current:
                raise UncheckedToken("the identity provider cannot be reached; try again")
        found = self._found(key_id, algorithm)
        if found is None:
            # It may be new. Others that wait for the same answer share it.
            await self._read()
            found = self._found(key_id, algorithm)
        if found is None:
            raise RefusedToken("the provider has no such key")
        return found.loaded(algorithm)

    async def try_out(self) -> str:
        """Read them now. Returns why that fails; empty if it does not."""
        await self._read()
        return self.problem

    def _found(self, key_id: str | None, algorithm: str) -> ProviderKey | None:
        """A token that names no key is checked with the only one there is for its algorithm."""
        fitting = [key for key in self._keys if key.fits(algorithm) and key_id in (None, key.key_id)]
        return fitting[0] if len(fitting) == 1 else None

    async def _read(self) -> None:
        self._start_reading()
        if self._reading is not None:
            # A request that is given up must not end what others wait for.
            await asyncio.shield(self._reading)

    def _start_reading(self) -> None:
        if self._reading is None and self._clock() - self._tried_s >= BETWEEN_READS_S:
            self._tried_s = self._clock()
            self._reading = asyncio.get_running_loop().create_task(self._read_now())

    async def _read_now(self) -> None:
        try:
            keys = _usable(await self._document(await self._jwks_url(), "its keys"))
        except (ToolError, _Unreadable) as problem:
            self.problem = str(problem)
            self._warn("the keys of identity.issuer cannot be read", problem=self.problem)
            return
        finally:
            self._reading = None
        if [key.members for key in keys] != [key.members for key in self._keys]:
            self._keys = keys
            self.generation += 1
        self._read_s = self._clock()
        self.problem = ""

    async def _jwks_url(self) -> str:
        """From the provider's metadata, unless the settings name it: OpenID Connect Discovery, else RFC 8414."""
        if self._identity.jwks_url:
            return self._identity.jwks_url
        issuer = self._identity.issuer
        parts = urlsplit(issuer)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        try:
            metadata = await self._document(f"{origin}{path}/.well-known/openid-configuration", "its metadata")
        except _Unreadable:
            url = f"{origin}/.well-known/oauth-authorization-server{path}"
            metadata = await self._document(url, "its metadata")
        if metadata.get("issuer") != issuer:
            raise _Unreadable(f"its metadata is of another issuer than {issuer}")
        url = metadata.get("jwks_uri")
        if not isinstance(url, str) or not (url.startswith("https://") or _origin(url) == origin):
            raise _Unreadable("its metadata names no jwks_uri over https")
        return url

    async def _document(self, url: str, what: str) -> Mapping[str, Any]:
        """The JSON object there. Raises `_Unreadable`, and `ToolError` if nobody answers."""
        # What the operator wrote may be inside the company's network; what a document names only beside it.
        trusted = [urlsplit(one).netloc for one in (self._identity.issuer, self._identity.jwks_url) if one]
        answer = await self._http.send(
            "GET",
            url,
            headers={"accept": "application/json"},
            allow_hosts=trusted,
            timeout_s=TIMEOUT_S,
            max_bytes=_MAX_BYTES,
        )
        if answer.status != 200 or answer.truncated:
            raise _Unreadable(f"{what}: {url} answered with status {answer.status}")
        try:
            document: Any = from_json(answer.body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise _Unreadable(f"{what}: {url} holds no JSON object")
        return cast("dict[str, Any]", document)


def _usable(document: Mapping[str, Any]) -> list[ProviderKey]:
    """Keys that can be public ones. A shared secret in a public set is none. Raises `_Unreadable` without any."""
    listed: Any = document.get("keys")
    entries = cast("list[Any]", listed)[:_MAX_KEYS] if isinstance(listed, list) else []
    keys = [
        ProviderKey(cast("dict[str, Any]", entry))
        for entry in entries
        if isinstance(entry, dict) and cast("dict[str, Any]", entry).get("kty") in ("RSA", "EC", "OKP")
    ]
    if not keys:
        raise _Unreadable("its set of keys holds none for signatures")
    return keys


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
