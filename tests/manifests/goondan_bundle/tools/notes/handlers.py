from pathlib import Path


def _file(ctx):
    return Path(ctx.workdir) / "notes.txt"


async def add(ctx, input):
    with _file(ctx).open("a") as file:
        file.write(input["text"] + "\n")
    return {"written": True}


async def list(ctx, input):
    return _file(ctx).read_text().splitlines()


handlers = {"add": add, "list": list}
