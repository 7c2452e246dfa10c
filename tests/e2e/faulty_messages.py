"""Messages that are no sound JSON, each with the code and the id it is answered with."""

from __future__ import annotations

import pytest


def _call(arguments: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"Bash","arguments":%s}}' % arguments


FAULTY = pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        pytest.param(b"{not json", -32700, None, id="PR-01"),
        pytest.param(b"[" * 200_000, -32600, None, id="PR-07"),
        pytest.param(_call(b'{"command":"echo a","timeout":NaN}'), -32700, "x", id="PR-10"),
        pytest.param(b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32600, None, id="PR-11"),
        pytest.param(_call(b'{"command":"echo a","command":"echo b"}'), -32600, "x", id="named twice"),
        pytest.param(_call(b'{"command":"echo \\ud800"}'), -32600, "x", id="half of a surrogate pair"),
        pytest.param(_call(b'{"command":' + b"[" * 300 + b"]" * 300 + b"}"), -32600, "x", id="nested"),
    ],
)
