"""Mailboxes: what is sent is stored, what is read is read once, and broken lines harm nothing."""

from __future__ import annotations

import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.agents.teams.mailbox import Letter, Mailbox


def texts(mailbox: Mailbox) -> list[str]:
    return [letter.text for letter in mailbox.take()]


def test_letters_are_read_once_in_the_order_they_were_sent(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, "tester")
    mailbox.post(Letter("main", "message", "one"))
    mailbox.post(Letter("main", "message", "two"))

    assert mailbox.has_unread()
    assert texts(mailbox) == ["one", "two"]
    assert texts(mailbox) == []
    assert not mailbox.has_unread()


def test_a_letter_survives_the_process(tmp_path: Path) -> None:
    Mailbox(tmp_path, "tester").post(Letter("main", "message", "kept", "sum"))

    (letter,) = Mailbox(tmp_path, "tester").take()

    assert (letter.sender, letter.kind, letter.text, letter.summary) == ("main", "message", "kept", "sum")


def test_broken_lines_are_set_aside_and_the_others_arrive(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path, "tester")
    mailbox.post(Letter("main", "message", "one"))
    with (tmp_path / "tester.jsonl").open("ab") as file:
        file.write(b'{"sender": 1, "kind": "x", "text": "y"}\nnot json\n{"torn": ')
    mailbox.post(Letter("main", "message", "two"))

    assert texts(mailbox) == ["one", "two"]
    assert (tmp_path / "tester.broken").read_bytes().count(b"\n") == 3


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    def write(writer: int) -> None:
        for number in range(20):
            Mailbox(tmp_path, "tester").post(Letter("main", "message", f"{writer}:{number}"))

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert sorted(texts(Mailbox(tmp_path, "tester"))) == sorted(f"{w}:{n}" for w in range(4) for n in range(20))


@given(st.text())
def test_any_text_comes_back_as_it_was(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        mailbox = Mailbox(Path(folder), "tester")
        mailbox.post(Letter("main", "message", text))
        assert texts(mailbox) == [text]
