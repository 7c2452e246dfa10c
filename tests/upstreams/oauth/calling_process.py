"""One goat-mcp among others: `calling_process.py FOLDER URL GO [OAUTH]` waits for the file GO, then calls a tool once.

OAUTH is the key `oauth` of its entry, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio

from tests.upstreams.fleet import fleet
from tests.upstreams.oauth.guarded_server import logins_of


async def main(folder: Path, url: str, go: Path, oauth: str) -> None:
    print("ready", flush=True)
    with anyio.fail_after(120):
        while not go.exists():  # noqa: ASYNC110, ASYNC240  # another process makes it
            await anyio.sleep(0.01)
    own = folder / f"own-{os.getpid()}"
    own.mkdir()
    async with fleet(own, {"web": {"url": url, "oauth": json.loads(oauth)}}, logins=logins_of(folder)) as running:
        print((await running.call("mcp__web__read")).text, flush=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), (*sys.argv[4:], "null")[0])
