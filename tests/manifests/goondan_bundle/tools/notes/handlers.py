from pathlib import Path
from typing import Any


def _file(ctx: Any) -> Path:
    return Path(ctx.workdir) / "notes.txt"


async def add(ctx: Any, input: Any) -> Any:
    with _file(ctx).open("a") as file:
        file.write(input["text"] + "\n")
    return {"written": True}


async def list(ctx: Any, input: Any) -> Any:
    return _file(ctx).read_text().splitlines()


handlers: dict[str, Any] = {"add": add, "list": list}
