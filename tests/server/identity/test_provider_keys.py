"""The provider's keys: found, shared, kept while it is down, and asked for again when they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from goat_mcp.server.identity.challenge import RefusedToken, UncheckedToken
from goat_mcp.server.identity.jwt_tokens import JwtTokens
from goat_mcp.server.identity.provider_keys import BETWEEN_READS_S, KEPT_S, REFRESH_S, ProviderKeys
from goat_mcp.settings.identity import IdentitySettings
from goat_mcp.web.http import HttpClient, HttpOptions
from tests.openid_provider import OpenIdProvider, openid_provider, rsa_key

pytestmark = pytest.mark.anyio
AUDIENCE = "https://mcp.example.com/mcp"


class Clock:
    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        return self.s


class Checked:
    """A provider, and what checks its tokens, with a clock that a test turns."""

    def __init__(self, provider: OpenIdProvider, **settings: Any) -> None:
        self.provider = provider
        self.clock = Clock()
        self.warnings: list[str] = []
        identity = IdentitySettings(issuer=provider.issuer, **settings)
        self.keys = ProviderKeys(identity, HttpClient(HttpOptions()), self._warn, self.clock)
        self.tokens = JwtTokens(identity, self.keys, [AUDIENCE], dict[str, Any])

    def _warn(self, event: str, **fields: Any) -> None:
        self.warnings.append(f"{event}: {fields}")

    @property
    def reads(self) -> int:
        return self.provider.asked["/jwks"]

    async def verdict(self, token: str) -> str:
        """The principal, or why there is none."""
        try:
            return (await self.tokens.verify_token(token)).client_id
        except RefusedToken as refused:
            return f"{refused.status}: {refused.reason}"

    async def until(self, reads: int) -> None:
        with anyio.fail_after(30):
            while self.reads < reads or self.keys.is_reading:  # noqa: ASYNC110  # another thread answers
                await anyio.sleep(0.01)


@pytest.fixture
def checked() -> Iterator[Checked]:
    with openid_provider() as provider:
        yield Checked(provider)


UNKNOWN = "401: the provider has no such key"
DOWN = "503: the identity provider cannot be reached; try again"


async def test_many_tokens_at_once_ask_the_provider_once(checked: Checked) -> None:
    tokens = [checked.provider.token(AUDIENCE, sub=f"user-{number}") for number in range(20)]
    verdicts: set[str] = set()

    async def check(token: str) -> None:
        verdicts.add(await checked.verdict(token))

    async with anyio.create_task_group() as group:
        for token in tokens:
            group.start_soon(check, token)

    assert verdicts == {f"user:user-{number}" for number in range(20)}
    assert checked.reads == 1


async def test_a_new_key_counts_at_once_and_the_old_one_as_long_as_the_provider_has_it(checked: Checked) -> None:
    old = checked.provider.token(AUDIENCE)
    before = await checked.verdict(old)
    checked.provider.keys.append(rsa_key("second"))
    checked.clock.s += BETWEEN_READS_S
    both = [await checked.verdict(checked.provider.token(AUDIENCE)), await checked.verdict(old)]
    del checked.provider.keys[0]
    checked.clock.s += REFRESH_S
    assert await checked.verdict(old) == "user:ada"  # the keys at hand still count while they are read again
    await checked.until(3)

    assert [before, *both] == ["user:ada"] * 3
    assert await checked.verdict(old) == UNKNOWN
    assert await checked.verdict(checked.provider.token(AUDIENCE)) == "user:ada"


async def test_unknown_keys_cost_the_provider_one_question_in_five_seconds(checked: Checked) -> None:
    assert await checked.verdict(checked.provider.token(AUDIENCE)) == "user:ada"
    foreign = [checked.provider.token(AUDIENCE, key=rsa_key(f"foreign-{number}")) for number in range(3)]
    foreign = [checked.provider.token(AUDIENCE, header={"kid": f"foreign-{n}"}) for n in range(100)] + foreign

    checked.clock.s += BETWEEN_READS_S
    verdicts = {await checked.verdict(token) for token in foreign}
    in_between = checked.reads
    checked.clock.s += BETWEEN_READS_S
    verdicts |= {await checked.verdict(token) for token in foreign}

    assert verdicts == {UNKNOWN}
    assert (in_between, checked.reads) == (2, 3)


async def test_a_request_that_is_given_up_does_not_end_what_others_wait_for(checked: Checked) -> None:
    token = checked.provider.token(AUDIENCE)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await checked.verdict(token)
    assert scope.cancelled_caught

    assert await checked.verdict(token) == "user:ada"
    assert checked.reads == 1


async def test_a_provider_that_is_down_at_first_is_asked_again(checked: Checked) -> None:
    token = checked.provider.token(AUDIENCE)
    checked.provider.is_down = True
    verdicts = [await checked.verdict(token), await checked.verdict(token)]
    asked = sum(checked.provider.asked.values())
    checked.provider.is_down = False
    verdicts.append(await checked.verdict(token))  # not yet
    checked.clock.s += BETWEEN_READS_S

    assert verdicts == [DOWN] * 3
    assert asked == 2  # both places of its metadata, once
    assert await checked.verdict(token) == "user:ada"
    assert "cannot be read" in checked.warnings[0]
    assert token not in str(checked.warnings)


async def test_keys_count_for_an_hour_without_the_provider_and_no_longer(checked: Checked) -> None:
    token = checked.provider.token(AUDIENCE)
    assert await checked.verdict(token) == "user:ada"
    checked.provider.is_down = True

    checked.clock.s += KEPT_S - 1
    assert [await checked.verdict(token), await checked.verdict(checked.provider.token(AUDIENCE))] == ["user:ada"] * 2
    await checked.until(0)
    checked.clock.s += BETWEEN_READS_S

    assert await checked.verdict(token) == DOWN
    checked.provider.is_down = False
    checked.clock.s += BETWEEN_READS_S
    assert await checked.verdict(token) == "user:ada"


async def test_a_checked_token_is_not_checked_again_until_it_ends(
    checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jwt

    decoded = 0
    decode = jwt.decode

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal decoded
        decoded += 1
        return decode(*args, **options)

    monkeypatch.setattr(jwt, "decode", counted)
    token = checked.provider.token(AUDIENCE)
    for _ in range(5):
        assert await checked.verdict(token) == "user:ada"
    once = decoded
    monkeypatch.setattr(checked.tokens, "_now_s", lambda: __import__("time").time() + 120)

    assert once == 1
    assert await checked.verdict(token) == "user:ada"  # the library's clock still says that it is good
    assert decoded == 2


async def test_only_so_many_tokens_are_remembered(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.server.identity.jwt_tokens.MAX_CHECKED", 3)
    for number in range(10):
        await checked.verdict(checked.provider.token(AUDIENCE, sub=f"user-{number}"))

    assert len(checked.tokens._checked) == 3  # pyright: ignore[reportPrivateUsage]  # what grows without it


async def test_a_provider_with_the_document_of_rfc_8414_alone_is_found() -> None:
    with openid_provider("/a/tenant") as provider:
        provider.has_openid = False
        checked = Checked(provider)

        assert await checked.verdict(provider.token(AUDIENCE)) == "user:ada"
        assert provider.asked["/.well-known/oauth-authorization-server/a/tenant"] == 1


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"issuer": "https://evil.example.com"}, "another issuer"),
        ({"jwks_uri": "http://evil.example.com/jwks"}, "no jwks_uri over https"),
        ({"jwks_uri": 7}, "no jwks_uri over https"),
        ({"jwks_uri": "https://127.0.0.1:9/jwks"}, "not public"),
    ],
)
async def test_metadata_that_leads_elsewhere_is_not_followed(
    checked: Checked, metadata: dict[str, Any], why: str
) -> None:
    checked.provider.metadata = metadata

    assert await checked.verdict(checked.provider.token(AUDIENCE)) == DOWN
    assert why in checked.warnings[0]


async def test_keys_at_an_address_of_the_settings_need_no_metadata() -> None:
    with openid_provider() as provider:
        checked = Checked(provider, jwks_url=f"{provider.issuer}/jwks")

        assert await checked.verdict(provider.token(AUDIENCE)) == "user:ada"
        assert set(provider.asked) == {"/jwks"}


async def test_a_token_that_names_no_key_needs_the_only_one_of_its_kind(checked: Checked) -> None:
    token = checked.provider.token(AUDIENCE, header={"kid": None})
    assert await checked.verdict(token) == "user:ada"
    checked.provider.keys.append(rsa_key("second"))
    checked.clock.s += REFRESH_S
    await checked.verdict(token)
    await checked.until(2)

    assert await checked.verdict(token) == UNKNOWN


async def test_unchecked_is_no_401() -> None:
    assert UncheckedToken("x").status == 503
