"""Whose each frame is, without processes: sessions and the process are lists of frames. WSP-1, FLW-1, FLW-2, FLW-4."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from goat_mcp.upstreams.sharing.multiplexer import Multiplexer

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@dataclass(eq=False)
class Session:
    """What one session got."""

    got: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    errors: list[tuple[int | str, str]] = field(default_factory=list[tuple[int | str, str]])
    moves: int = 0

    def deliver(self, frame: dict[str, Any]) -> None:
        self.got.append(frame)

    def failed(self, request_id: int | str, error: ErrorData) -> None:
        self.errors.append((request_id, error.message))

    def leave_when_idle(self) -> None:
        self.moves += 1

    def results(self) -> dict[Any, Any]:
        return {frame["id"]: frame["result"] for frame in self.got if "result" in frame}


class Process:
    """A process and the sessions that share it."""

    def __init__(self, *, asks: bool = False) -> None:
        self.got: list[dict[str, Any]] = []
        self.frames = Multiplexer(self._take, lambda: asks or self.frames.has_asked)

    def _take(self, message: JSONRPCMessage) -> bool:
        self.got.append(message.model_dump(by_alias=True, exclude_unset=True))
        return True

    def session(self, capabilities: dict[str, Any] | None = None) -> Session:
        """One more that uses it; it has made a handshake if it says what it can do."""
        session = Session()
        self.frames.join(session)
        if capabilities is not None:
            params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {}}
            assert self.frames.fits(session, params)
            self.ask(session, 1, "initialize", **params)
            for frame in self.got:
                if frame.get("method") == "initialize" and not self.frames.is_ready:
                    self.answer(frame["id"], {"protocolVersion": "2025-11-25"})
            self.tell(session, "notifications/initialized")
        return session

    def ask(self, session: Session, request_id: int | str, method: str, **params: Any) -> int:
        """Returns the id that the process knows the request by."""
        frame = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.frames.from_session(session, frame)
        return self.got[-1].get("id", 0) if self.got else 0

    def tell(self, session: Session, method: str, **params: Any) -> None:
        self.frames.from_session(session, {"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, request_id: int | str, result: dict[str, Any]) -> bool:
        return self.frames.from_process(JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result))

    def notify(self, method: str, **params: Any) -> None:
        self.frames.from_process(JSONRPCNotification(jsonrpc="2.0", method=method, params=params))

    def question(self, request_id: int | str, method: str = "elicitation/create") -> None:
        self.frames.from_process(JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params={"message": "?"}))

    def methods(self) -> list[str]:
        return [frame["method"] for frame in self.got if "method" in frame]


IDS = st.one_of(st.integers(0, 5), st.text(max_size=3))


@given(st.lists(st.tuples(st.integers(0, 2), IDS), max_size=20, unique=True), st.randoms(use_true_random=False))
def test_each_answer_goes_to_who_asked_under_the_id_it_was_asked_with(asked: list[tuple[int, Any]], order: Any) -> None:
    process = Process()
    sessions = [process.session() for _ in range(3)]

    numbers = {(at, name): process.ask(sessions[at], name, "tools/call", name=repr((at, name))) for at, name in asked}
    shuffled = list(numbers.items())
    order.shuffle(shuffled)
    for (at, name), number in shuffled:
        assert process.answer(number if order.random() < 0.5 else str(number), {"of": repr((at, name))})

    assert len(set(numbers.values())) == len(asked)
    for at, session in enumerate(sessions):
        assert session.results() == {name: {"of": repr((at, name))} for whose, name in asked if whose == at}


def test_a_frame_passes_as_it_is_but_for_its_id_and_its_progress_token() -> None:
    process = Process()
    session = process.session()
    params = {"name": "x", "arguments": {"a": [None, 1.5, 10**30]}, "_meta": {"progressToken": "t", "vendor/x": 1}}
    result: dict[str, Any] = {
        "content": [],
        "structuredContent": {"n": None, "big": 10**30},
        "_meta": {"vendor/y": [2]},
        "later": 1,
    }

    number = process.ask(session, "mine", "tools/call", **params)
    process.answer(number, result)

    sent = {**params, "_meta": {"progressToken": number, "vendor/x": 1}}
    assert process.got == [{"jsonrpc": "2.0", "method": "tools/call", "id": number, "params": sent}]
    assert session.got == [{"jsonrpc": "2.0", "id": "mine", "result": result}]


def test_progress_comes_with_the_sessions_own_token_and_never_after_the_answer() -> None:
    process = Process()
    one, other = process.session(), process.session()
    number = process.ask(one, 1, "tools/call", _meta={"progressToken": 0})
    process.ask(other, 1, "tools/call", _meta={"progressToken": 0})

    process.notify("notifications/progress", progressToken=number, progress=1)
    process.answer(number, {})
    process.notify("notifications/progress", progressToken=number, progress=2)

    heard = [frame["params"] for frame in one.got if frame.get("method") == "notifications/progress"]
    assert heard == [{"progressToken": 0, "progress": 1}]
    assert other.got == []


def test_a_cancelled_request_is_cancelled_by_the_processs_id_and_its_late_answer_goes_nowhere() -> None:
    process = Process()
    one, other = process.session(), process.session()
    kept = process.ask(other, 7, "tools/call")
    cancelled = process.ask(one, 7, "tools/call")

    process.tell(one, "notifications/cancelled", requestId=7, reason="enough")
    process.tell(one, "notifications/cancelled", requestId=8)

    assert process.got[2:] == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": cancelled, "reason": "enough"},
        }
    ]
    assert not process.answer(cancelled, {})
    assert process.answer(kept, {})
    assert (one.results(), other.results()) == ({}, {7: {}})


def test_a_handshake_is_made_once_for_all_who_can_do_the_same() -> None:
    process = Process()
    first, second = process.session(FORMS), process.session(FORMS)

    assert process.methods() == ["initialize", "notifications/initialized"]
    assert first.results() == second.results() == {1: {"protocolVersion": "2025-11-25"}}
    assert not process.frames.fits(Session(), {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})


def test_who_comes_during_a_handshake_gets_its_answer_or_its_refusal() -> None:
    params: dict[str, Any] = {"protocolVersion": "1", "capabilities": {}, "clientInfo": {}}
    for refuse in (False, True):
        process = Process()
        first, second = process.session(), process.session()
        number = process.ask(first, 1, "initialize", **params)
        process.ask(second, 2, "initialize", **params)
        if refuse:
            error = ErrorData(code=-32022, message="not this one")
            process.frames.from_process(JSONRPCError(jsonrpc="2.0", id=number, error=error))
            assert (first.errors, second.errors) == ([(1, "not this one")], [(2, "not this one")])
        else:
            process.answer(number, {"ok": 1})
            assert (first.results(), second.results()) == ({1: {"ok": 1}}, {2: {"ok": 1}})


def test_what_speaks_the_stateless_era_makes_no_handshake_in_the_same_process() -> None:
    process = Process()
    session = process.session()
    process.answer(process.ask(session, 1, "server/discover"), {"supportedVersions": ["2026-07-28"]})

    assert process.frames.is_ready
    assert not process.frames.fits(session, {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})


def test_a_question_goes_to_the_only_session_and_its_answer_back() -> None:
    process = Process()
    alone = process.session(FORMS)

    process.question("q")
    process.frames.from_session(Session(), {"jsonrpc": "2.0", "id": "q", "result": {"forged": 1}})
    process.frames.from_session(alone, {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}})

    assert alone.got[-1] == {"jsonrpc": "2.0", "method": "elicitation/create", "id": "q", "params": {"message": "?"}}
    assert process.got[-1] == {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}
    assert process.frames.owner is alone


@pytest.mark.parametrize("leaves", [False, True], ids=["both are there", "one has left"])
def test_a_question_that_may_be_anothers_is_put_to_nobody_and_all_move(leaves: bool) -> None:
    process = Process()
    one, other = process.session(FORMS), process.session(FORMS)
    if leaves:
        process.frames.leave(other)

    process.question("q")

    assert "whose question is this" in process.got[-1]["error"]["message"]
    assert not any(frame.get("method") for session in (one, other) for frame in session.got)
    assert process.frames.is_retired
    assert (one.moves, other.moves) == (1, 0 if leaves else 1)


def test_what_was_not_declared_is_refused_and_nobody_moves() -> None:
    process = Process()
    session = process.session({})

    process.question("q")

    assert process.got[-1]["error"]["code"] == -32601
    assert (process.frames.has_asked, session.moves) == (False, 0)


def test_an_upstream_that_is_known_to_ask_is_shared_only_by_those_who_cannot_be_asked() -> None:
    process = Process(asks=True)
    process.session(FORMS)
    about: dict[str, Any] = {"protocolVersion": "2025-11-25", "clientInfo": {}}

    assert not process.frames.fits(Session(), {**about, "capabilities": FORMS})

    process = Process(asks=True)
    process.session({})

    assert process.frames.fits(Session(), {**about, "capabilities": {}})


def test_a_ping_of_the_process_is_answered_here() -> None:
    process = Process()
    session = process.session({})

    process.question("p", "ping")

    assert process.got[-1] == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert len(session.got) == 1


def test_a_log_message_is_heard_by_whose_call_it_is_and_by_nobody_if_that_is_unknown() -> None:
    process = Process()
    one, other = process.session(), process.session()

    process.notify("notifications/message", data="between calls")
    call = process.ask(one, 1, "tools/call")
    process.ask(other, 1, "tools/list")
    process.notify("notifications/message", data="of one")
    process.ask(other, 2, "tools/call")
    process.notify("notifications/message", data="of whom?")
    process.answer(call, {})
    process.notify("notifications/message", data="of the other")

    heard = [[frame["params"]["data"] for frame in session.got if "params" in frame] for session in (one, other)]
    assert heard == [["between calls", "of one"], ["between calls", "of the other"]]


def test_the_process_logs_for_who_wants_most() -> None:
    process = Process()
    one, other = process.session(), process.session()

    process.answer(process.ask(one, 1, "logging/setLevel", level="debug"), {})
    process.ask(other, 1, "logging/setLevel", level="error")

    assert process.methods() == ["logging/setLevel"]
    assert other.results() == {1: {}}


def test_a_subscription_ends_at_the_process_with_the_last_session_that_has_it() -> None:
    process = Process()
    one, other, third = process.session(), process.session(), process.session()
    for session in (one, other, third):
        process.answer(process.ask(session, 1, "resources/subscribe", uri="a:b"), {})

    process.ask(one, 2, "resources/unsubscribe", uri="a:b")
    process.frames.leave(other)
    before = process.methods()
    process.frames.leave(third)

    assert before == ["resources/subscribe"] * 3
    assert one.results() == {1: {}, 2: {}}
    assert process.methods() == [*before, "resources/unsubscribe"]


def test_a_request_that_is_not_answered_yet_counts_for_the_log_level_and_for_subscriptions() -> None:
    process = Process()
    one, other = process.session(), process.session()

    process.ask(one, 1, "logging/setLevel", level="debug")
    process.ask(other, 1, "logging/setLevel", level="error")
    process.answer(process.ask(one, 2, "resources/subscribe", uri="a:b"), {})
    process.ask(other, 2, "resources/subscribe", uri="a:b")
    process.ask(one, 3, "resources/unsubscribe", uri="a:b")

    assert process.methods() == ["logging/setLevel", "resources/subscribe", "resources/subscribe"]


def test_a_subscription_that_was_refused_is_none() -> None:
    process = Process()
    one, other = process.session(), process.session()
    for session in (one, other):
        error = ErrorData(code=-32602, message="no such resource")
        number = process.ask(session, 1, "resources/subscribe", uri="a:b")
        process.frames.from_process(JSONRPCError(jsonrpc="2.0", id=number, error=error))

    process.frames.leave(one)

    assert process.methods() == ["resources/subscribe"] * 2


@pytest.mark.parametrize("uri", ["a:b", "a:b/part"])
def test_an_updated_resource_is_reported_to_who_has_subscribed(uri: str) -> None:
    process = Process()
    one, other = process.session(), process.session()
    process.answer(process.ask(one, 1, "resources/subscribe", uri="a:b"), {})

    process.notify("notifications/resources/updated", uri=uri)

    assert one.got[-1].get("params") == {"uri": uri}
    assert other.got == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/cancelled", {"requestId": [1]}),
        ("notifications/cancelled", {"requestId": {"a": 1}}),
        ("notifications/progress", {"progressToken": {}}),
        ("notifications/resources/updated", {"uri": []}),
        ("notifications/tools/list_changed", {"_meta": {SUBSCRIPTION: [1]}}),
    ],
)
def test_odd_members_of_a_notice_break_nothing(method: str, params: dict[str, Any]) -> None:
    process = Process()
    session = process.session(FORMS)
    process.question("q")

    process.notify(method, **params)

    assert process.answer(process.ask(session, 1, "tools/call"), {})


def test_a_session_that_makes_its_handshake_again_is_still_alone() -> None:
    process = Process()
    alone = process.session()
    for request_id in (1, 2):
        number = process.ask(
            alone, request_id, "initialize", protocolVersion="1", capabilities=FORMS, clientInfo={"name": "x"}
        )
        error = ErrorData(code=-32603, message="not now")
        if request_id == 1:
            process.frames.from_process(JSONRPCError(jsonrpc="2.0", id=number, error=error))

    process.question("q")

    assert process.frames.owner is alone


def test_a_change_stream_tells_its_own_session_under_its_own_id() -> None:
    process = Process()
    one, other = process.session(), process.session()
    stream = process.ask(one, "s", "subscriptions/listen", notifications={})
    process.ask(other, "s", "subscriptions/listen", notifications={})

    process.notify("notifications/tools/list_changed", _meta={SUBSCRIPTION: stream, "vendor/x": 1})

    told = {"_meta": {SUBSCRIPTION: "s", "vendor/x": 1}}
    assert one.got == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": told}]
    assert other.got == []


def test_a_changed_list_is_told_to_all() -> None:
    process = Process()
    sessions = [process.session(), process.session()]

    process.notify("notifications/tools/list_changed")

    assert [session.got[0]["method"] for session in sessions] == ["notifications/tools/list_changed"] * 2


def test_who_leaves_has_its_requests_cancelled_and_its_questions_answered() -> None:
    process = Process()
    leaving = process.session(FORMS)
    number = process.ask(leaving, 5, "tools/call")
    process.question("q")

    process.frames.leave(leaving)

    assert process.got[-2:] == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": number, "reason": "the client is gone"},
        },
        {"jsonrpc": "2.0", "id": "q", "error": {"code": -32600, "message": "the client is gone"}},
    ]
    assert process.frames.is_retired  # it was asked for one session: no other gets it


def test_a_process_that_left_a_ping_unanswered_gets_no_more_sessions_and_keeps_those_it_has() -> None:
    process = Process()
    impatient, other = process.session({}), process.session({})
    process.ask(impatient, 2, "ping")

    process.frames.leave(impatient)

    assert process.frames.is_retired
    assert process.frames.channels == {other}
    assert process.answer(process.ask(other, 2, "tools/call"), {})


def test_a_request_that_the_process_cannot_read_any_more_is_none_that_may_have_run() -> None:
    is_read = [True]
    frames = Multiplexer(lambda message: is_read[0], lambda: False)
    session = Session()
    frames.join(session)

    sent = [_call(frames, session, 1)]
    is_read[0] = False
    sent.append(_call(frames, session, 2))

    assert sent == [True, False]
    assert frames.open_requests(session) == [1]


def _call(frames: Multiplexer, session: Session, request_id: int) -> bool:
    return frames.from_session(session, {"jsonrpc": "2.0", "id": request_id, "method": "tools/call"})
