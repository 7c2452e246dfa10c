"""The bearer token: private, long, compared whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.server.http.token import StaticToken, read_or_create_token

pytestmark = pytest.mark.anyio


def test_a_missing_file_is_created_private_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "token"

    token = read_or_create_token(file)

    assert len(token) >= 43
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_or_create_token(file) == token


def _refusal(file: Path) -> str:
    with pytest.raises(ToolError) as caught:
        read_or_create_token(file)
    assert caught.value.code is ErrorCode.CONFIG
    return caught.value.message


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("x" * 40)
    file.chmod(0o644)

    assert "can be read by others (mode 0644)" in _refusal(file)


def test_a_link_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("x" * 40)
    target.chmod(0o600)
    link = tmp_path / "token"
    link.symlink_to(target)

    assert "is a symbolic link" in _refusal(link)


@pytest.mark.parametrize("text", ["", "short", "with a space " + "x" * 40, "é" * 40])
def test_a_token_that_is_no_token_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)

    message = _refusal(file)

    assert "does not hold a token" in message
    assert not text or text not in message


@pytest.mark.parametrize("shown", ["", "a" * 42, "a" * 44, "A" * 43, "é"])
async def test_only_the_whole_token_is_accepted(shown: str) -> None:
    verifier = StaticToken("a" * 43)

    assert await verifier.verify_token(shown) is None
    accepted = await verifier.verify_token("a" * 43)
    assert accepted is not None and accepted.subject == "operator"
