"""Authorization servers that lie, and upstreams that lead elsewhere: R-UP-9, UP-35, AUT-1."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from goat_mcp.upstreams.config.entry import HttpEndpoint, UpstreamConfig
from goat_mcp.upstreams.config.oauth_keys import OAuthOptions
from goat_mcp.upstreams.oauth.login_contract import LoginRefused
from goat_mcp.upstreams.oauth.login_store import LoginFacts, LoginSecrets, LoginStore, StoredLogin
from goat_mcp.upstreams.oauth.pending_login import redirect_listener
from goat_mcp.upstreams.oauth.provider_requests import Destinations
from tests.upstreams.oauth.guarded_server import Agreeable, login_of, logins_of
from tests.upstreams.test_http_upstreams import canned_server, response

pytestmark = pytest.mark.anyio


class Refusing(Agreeable):
    """Nobody should send this person anywhere."""

    async def visit(self, url: str) -> None:
        self.visited.append(url)
        raise LoginRefused("was sent away")


Answers = dict[str, dict[str, Any]]


@asynccontextmanager
async def lying(answers: Callable[[str], Answers]) -> AsyncGenerator[tuple[str, list[str]]]:
    """A server that is upstream and authorization server in one; yields its origin and the paths it was asked for."""
    origin: list[str] = []
    paths: list[str] = []

    def reply(request: bytes) -> bytes:
        path = request.split(b" ")[1].decode()
        paths.append(path)
        document = answers(origin[0]).get(path)
        if document is None:
            return response("404 Not Found")
        if "location" in document:
            return response("302 Found", location=document["location"])
        return response("200 OK", json.dumps(document).encode(), content_type="application/json")

    async with canned_server(reply) as (port, _):
        origin.append(f"http://127.0.0.1:{port}")
        yield origin[0], paths


def truthful(origin: str, **changed: Any) -> Answers:
    """What an honest server says of itself, with changes of its authorization server's metadata."""
    metadata = {
        "issuer": f"{origin}/",
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
    }
    return {
        "/.well-known/oauth-protected-resource/mcp": {
            "resource": f"{origin}/mcp",
            "authorization_servers": [f"{origin}/"],
        },
        "/.well-known/oauth-authorization-server": {**metadata, **changed},
        "/register": {"client_id": "made-up", "redirect_uris": ["http://127.0.0.1:1/callback"]},
    }


async def refusal(
    folder: Path, answers: Callable[[str], Answers], challenge: str = ""
) -> tuple[str, list[str], Refusing]:
    person = Refusing()
    async with lying(answers) as (origin, paths):
        with pytest.raises(LoginRefused) as refused:
            await login_of(folder, f"{origin}/mcp").log_in(person, challenge=challenge.format(origin=origin))
    return str(refused.value), paths, person


async def test_an_honest_server_is_where_the_person_is_sent(tmp_path: Path) -> None:
    """The control of the tests below."""
    message, _, person = await refusal(tmp_path, truthful)

    assert message == "was sent away"
    assert len(person.visited) == 1


@pytest.mark.parametrize(
    "login",
    [
        "http://x/$(touch ran)",
        "http://x/$(id)",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://user:secret@x.test/authorize",
        "http://169.254.169.254/authorize",
        "http://[::ffff:10.0.0.1]/authorize",
    ],
)
async def test_up_35_a_login_address_that_is_none_is_refused_and_nobody_is_sent_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    """R-UP-9, CVE-2025-6514."""
    monkeypatch.chdir(tmp_path)
    message, _, person = await refusal(tmp_path, lambda origin: truthful(origin, authorization_endpoint=login))

    assert "refused" in message or "cannot be used" in message
    assert person.visited == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("is_supported", [True, False])
async def test_a_client_id_of_the_users_own_comes_before_a_registration_if_the_server_reads_it(
    tmp_path: Path, is_supported: bool
) -> None:
    """AUT-1: also before one that an earlier login was made with."""
    own = "https://client.example.com/goat-mcp.json"
    person = Refusing()
    async with lying(lambda origin: truthful(origin, client_id_metadata_document_supported=is_supported)) as (
        origin,
        paths,
    ):
        endpoint = HttpEndpoint(f"{origin}/mcp", oauth=OAuthOptions(client_metadata_url=own))
        config = UpstreamConfig(name="web", server="web", target=endpoint)
        logins = logins_of(tmp_path)
        facts = LoginFacts(
            resource=endpoint.url,
            issuer=f"{origin}/",
            client_id="made-up-before",
            principal="owner",
            server="web",
            is_registered=True,
            auth_server=truthful(origin, client_id_metadata_document_supported=is_supported)[
                "/.well-known/oauth-authorization-server"
            ],
            redirect_uri=person.redirect_uri,
        )
        registration = {"client_id": "made-up-before", "redirect_uris": [person.redirect_uri]}
        secrets = LoginSecrets(generation=0, access_token="t", registration=registration)
        LoginStore(logins.state).put(StoredLogin(facts=facts, secrets=secrets))
        with pytest.raises(LoginRefused, match="was sent away"):
            await logins.load(config, endpoint).log_in(person)

    (client_id,) = parse_qs(urlsplit(person.visited[0]).query)["client_id"]
    assert client_id == (own if is_supported else "made-up-before")
    assert "/register" not in paths


async def test_another_issuer_than_the_one_it_was_found_at_is_refused(tmp_path: Path) -> None:
    message, paths, person = await refusal(tmp_path, lambda origin: truthful(origin, issuer="https://bank.test/"))

    assert "issuer mismatch" in message
    assert "/register" not in paths
    assert person.visited == []


async def test_metadata_of_another_resource_is_refused(tmp_path: Path) -> None:
    def answers(origin: str) -> Answers:
        honest = truthful(origin)
        honest["/.well-known/oauth-protected-resource/mcp"]["resource"] = "https://bank.test/mcp"
        return honest

    message, paths, person = await refusal(tmp_path, answers)

    assert "does not match" in message
    assert "/register" not in paths
    assert person.visited == []


@pytest.mark.parametrize("place", ["http://10.0.0.1/meta", "https://10.0.0.1/meta", "http://example.com/meta"])
async def test_metadata_elsewhere_that_is_private_or_plain_http_is_not_asked_for(tmp_path: Path, place: str) -> None:
    """R-UP-9: what an upstream names may not be private."""
    message, paths, _ = await refusal(tmp_path, truthful, f'Bearer resource_metadata="{place}"')

    assert "refused" in message
    assert paths == []


async def test_metadata_that_redirects_to_another_host_is_not_followed(tmp_path: Path) -> None:
    """R-UP-9."""
    where = "/.well-known/oauth-protected-resource/mcp"
    message, paths, _ = await refusal(tmp_path, lambda origin: {where: {"location": "https://bank.test/x"}})

    assert "redirects to another host" in message
    assert paths == [where]


async def test_metadata_that_redirects_to_itself_comes_to_an_end(tmp_path: Path) -> None:
    where = "/.well-known/oauth-protected-resource/mcp"
    message, paths, _ = await refusal(tmp_path, lambda origin: {where: {"location": where}})

    assert "without an end" in message
    assert len(paths) < 10


def test_tokens_are_never_sent_over_plain_http_but_to_this_machine() -> None:
    with pytest.raises(LoginRefused, match="plain http"):
        Destinations("http://mcp.example.com/mcp").refuse_plain_upstream()
    Destinations("http://mcp.example.com/mcp", ["mcp.example.com"]).refuse_plain_upstream()
    Destinations("http://localhost:80/mcp").refuse_plain_upstream()


def test_a_public_upstream_cannot_lead_to_this_machine() -> None:
    """R-UP-9: only an upstream of this machine may have its authorization server here."""
    places = Destinations("https://mcp.example.com/mcp")

    with pytest.raises(LoginRefused):
        places.checked("http://127.0.0.1:9000/authorize", "it")
    assert not places.may_be_private(places.checked("https://localhost/authorize", "it"))


async def test_only_the_answer_with_our_state_counts() -> None:
    """AUT-3: anything on the machine can knock at the redirect address."""
    async with redirect_listener() as listener:
        listener.expect("https://as.test/authorize?state=ours")
        outcomes = [
            listener.take("/callback?code=c&state=theirs"),
            listener.take("/callback?code=c"),
            listener.take("nonsense"),
            listener.take(f"{listener.redirect_uri}?code=good&state=ours&iss=https://as.test"),
            listener.take("/callback?code=late&state=ours"),
        ]
        result = await listener.came_back()

    assert outcomes == [False, False, False, True, False]
    assert (result.code, result.state, result.iss) == ("good", "ours", "https://as.test")


async def test_a_no_of_the_authorization_server_is_told() -> None:
    async with redirect_listener() as listener:
        listener.expect("https://as.test/authorize?state=ours")
        listener.take("/callback?error=access_denied&state=ours")
        with pytest.raises(LoginRefused, match="access_denied"):
            await listener.came_back()
