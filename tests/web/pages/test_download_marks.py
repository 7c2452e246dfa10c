"""A saved file carries the mark of its system for files from the internet; if it cannot, it is saved all the same."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from goat_mcp.core import posix
from goat_mcp.web.pages import fetched_page, macos_quarantine
from goat_mcp.web.pages.macos_quarantine import quarantine_value
from goat_mcp.web.pages.windows_zone import zone_identifier
from tests.tools.fetching import WebDesk
from tests.web.http.local_server import page, serving

pytestmark = pytest.mark.anyio
on_linux = pytest.mark.linux_only("what Linux lacks or refuses is to be seen")


def test_the_quarantine_has_flags_time_agent_and_id() -> None:
    event = uuid.UUID("12345678-90ab-cdef-1234-567890abcdef")

    assert quarantine_value(0x5A5B3B2D + 0.9, event) == "0081;5a5b3b2d;goat-mcp;12345678-90AB-CDEF-1234-567890ABCDEF"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a/b.zip", "https://example.org/a/b.zip"),
        ("https://me:s3cret@example.org:8443/b.zip", "https://example.org:8443/b.zip"),
        ("https://example.org/b.zip?X-Signature=s3cret#s3cret", "https://example.org/b.zip"),
        ("https://[::1]:8443/b%20c.zip", "https://[::1]:8443/b%20c.zip"),
        ("https://example.org/ü.zip", "https://example.org/%C3%BC.zip"),
        ("https://example.org/a b\x85c", "https://example.org/a%20b%C2%85c"),
    ],
)
def test_the_zone_is_the_internet_and_names_the_address_without_what_may_be_secret(url: str, shown: str) -> None:
    assert zone_identifier(url) == f"[ZoneTransfer]\r\nZoneId=3\r\nHostUrl={shown}\r\n"


@on_linux
def test_the_quarantine_is_an_attribute_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Linux's call takes the same arguments, but for the last, and names that begin with `user.`.
    file = tmp_path / "saved.zip"
    file.touch()
    try:
        posix.setxattr(str(file), "user.test", b"")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    monkeypatch.setattr(macos_quarantine, "ATTRIBUTE", b"user.quarantine")

    macos_quarantine.mark(file)

    flags, at, agent, event = posix.getxattr(str(file), "user.quarantine").decode().split(";")
    assert (flags, agent) == ("0081", "goat-mcp")
    assert abs(int(at, 16) - file.stat().st_mtime) < 60 and uuid.UUID(event)


async def test_a_file_that_is_saved_on_windows_has_its_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_page, "platform", SimpleNamespace(SYSTEM="windows"))

    path, warnings = await saved(tmp_path)

    zone = path.with_name(path.name + ":Zone.Identifier").read_bytes()  # a stream there, a file of that name here
    assert zone.startswith(b"[ZoneTransfer]\r\nZoneId=3\r\nHostUrl=http://pub.test:")
    assert warnings == []


@on_linux
async def test_a_mark_that_cannot_be_made_is_logged_and_the_file_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetched_page, "platform", SimpleNamespace(SYSTEM="macos"))  # whose attribute Linux refuses

    path, warnings = await saved(tmp_path)

    problem = os.strerror(errno.ENOTSUP)
    assert path.read_bytes() == b"PK\x03\x04\0\0"
    assert warnings == [("a saved file is not marked as a download", {"file": str(path), "problem": problem})]


@on_linux
async def test_linux_has_no_such_mark(tmp_path: Path) -> None:
    path, warnings = await saved(tmp_path)

    assert (list(path.parent.iterdir()), posix.listxattr(str(path)), warnings) == ([path], [], [])


async def saved(folder: Path) -> tuple[Path, list[tuple[str, dict[str, object]]]]:
    """Where WebFetch saves a small archive, and what it logs."""
    async with serving({"/a.zip": page(b"PK\x03\x04\0\0", content_type="application/zip")}) as server:
        desk = WebDesk(folder, (server,))
        facts = (await desk.fetch(server.url("/a.zip", "pub.test"))).facts
    assert facts is not None
    return Path(facts["output_file"]), desk.warnings
