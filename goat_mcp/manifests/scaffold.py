"""The files of a new tool, ready to be called and changed. Text only: where they go is for the command to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from goat_mcp.manifests.kinds import API_VERSIONS

LANGUAGES = ("python", "shell", "http")
EXPORT = "today"
MANIFEST = "tool.yaml"


@dataclass(frozen=True)
class ScaffoldFile:
    """`text` of one file, and whether it is a program."""

    text: str
    is_program: bool = False


def scaffold(
    name: str, language: str, *, url: str = "", schema: str = "", has_jq: bool = True
) -> Mapping[str, ScaffoldFile]:
    """By file name, the manifest first. `schema` is where an editor finds what may stand in it; empty leaves it out."""
    entry, effect, config = _PARTS[language]
    head = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    files = {
        MANIFEST: ScaffoldFile(
            head
            + _MANIFEST.format(
                version=API_VERSIONS[0],
                name=name,
                entry=entry.format(url=_quoted(url)),
                config=config,
                title=name.replace("-", " ").replace("_", " "),
                effect=effect,
            )
        )
    }
    if language == "python":
        files["handlers.py"] = ScaffoldFile(_HANDLERS)
    elif language == "shell":
        files["tool.sh"] = ScaffoldFile(_WITH_JQ if has_jq else _WITH_PYTHON, is_program=True)
    return files


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


_MANIFEST = """\
apiVersion: {version}
kind: Tool
metadata:
  name: {name}
spec:
{entry}{config}  exports:
    - name: today                       # the tool is called {name}__today
      title: "Today's {title}"
      # What a model reads. Say first what the tool must not be used for.
      description: Example data for a city, computed from its name. Not a real report.
{effect}
      parameters:
        type: object
        properties:
          city: {{type: string, minLength: 1, description: "The city, e.g. Paris"}}
        required: [city]
        additionalProperties: false
      examples:
        - {{description: Ask about one city, input: {{city: Paris}}}}
"""
_OFFLINE = "      sideEffect: none                  # it changes nothing and asks nobody, so it runs unasked"
_NETWORK = "      sideEffect: network               # the input leaves this machine, so a person is asked first"
_CONFIG = """\
  config:                               # what settings may say under tools.NAME
    type: object
    properties:
      unit: {type: string, enum: [C, F]}
"""
_PARTS = {
    "python": (
        "  entry: ./handlers.py                 # its `handlers` has a function for each export\n",
        _OFFLINE,
        _CONFIG,
    ),
    "shell": (
        "  entry:\n    command: [./tool.sh]                # JSON on its standard input, JSON on its output\n",
        _OFFLINE,
        "",
    ),
    "http": (
        "  entry:\n    http:\n      url: {url}\n"
        "      method: POST                      # JSON in the body, JSON in the answer\n",
        _NETWORK,
        "",
    ),
}
_HANDLERS = '''\
"""What runs when one of the tools is called. Changes count from the next call on."""

import zlib


async def today(ctx, input):
    """`input` is what the manifest's parameters let through; what is given back has to be JSON.

    `ctx.workdir` is the workspace's directory, `ctx.config` what the settings say under `tools.NAME`, `ctx.logger` the
    server's log, `ctx.tool_call_id` this call as that log names it.
    """
    city = input["city"]
    unit = ctx.config.get("unit", "C")
    degrees = zlib.crc32(city.encode()) % 30  # computed from the name: replace it by what you want to know
    ctx.logger.info("made up %s degrees for %s", degrees, city)
    if unit == "F":
        degrees = degrees * 9 // 5 + 32
    return {"city": city, "degrees": degrees, "unit": unit, "note": "example data"}


handlers = {"today": today}
'''
_WITH_JQ = """\
#!/bin/sh
# Reads the input as JSON, prints what it gives back as JSON. A text on standard error and an exit code other than 0
# is a failure. GOAT_EXPORT is the export that is called, GOAT_WORKDIR the workspace's directory.
set -eu
city=$(jq -r .city)
# Computed from the name: replace it by what you want to know.
degrees=$(printf %s "$city" | cksum | awk '{print $1 % 30}')
jq -n --arg city "$city" --argjson degrees "$degrees" \\
  '{city: $city, degrees: $degrees, unit: "C", note: "example data"}'
"""
_WITH_PYTHON = """\
#!/bin/sh
# Reads the input as JSON, prints what it gives back as JSON. A text on standard error and an exit code other than 0
# is a failure. GOAT_EXPORT is the export that is called, GOAT_WORKDIR the workspace's directory.
set -eu
city=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["city"])')
# Computed from the name: replace it by what you want to know.
degrees=$(printf %s "$city" | cksum | awk '{print $1 % 30}')
python3 -c 'import json, sys
print(json.dumps({"city": sys.argv[1], "degrees": int(sys.argv[2]), "unit": "C", "note": "example data"}))' \\
  "$city" "$degrees"
"""
