"""Documents that can be used, one of each kind, for tests to begin with."""

from __future__ import annotations

from pathlib import Path

TOOL = """\
apiVersion: goat-mcp/v1
kind: Tool
metadata:
  name: weather
spec:
  entry: ./handlers.py
  exports:
    - name: today
      description: The weather of a city, today.
      sideEffect: read_only
      parameters:
        type: object
        properties:
          city: {type: string}
        required: [city]
"""
WHOLE_TOOL = """\
apiVersion: goat-mcp/v1
kind: Tool
metadata: {name: whole, description: All there is., labels: {a: b}}
spec:
  entry: {http: {url: "https://example.com/{export}", method: PUT, headers: {x-key: "${env:KEY}"}}}
  errorMessageLimit: 500
  timeoutMs: 1000
  config: {type: object, properties: {unit: {type: string}}}
  exports:
    - name: one
      title: One
      description: Does one thing.
      sideEffect: mutating
      risk: high
      readOnlyWhen: {path: [a, "b/*"]}
      hints: {readOnlyHint: false, idempotentHint: true}
      timeoutMs: 10
      parameters: {type: object, properties: {path: {type: string}, n: {type: [integer, "null"], enum: [1, null]}}}
      output: {type: object}
      access: {reads: [path], writes: path, category: things}
      examples: [{description: Once, input: {path: a}, output: {x: 1}}]
    - {name: two, description: Another., sideEffect: none}
"""
UPSTREAM = """\
apiVersion: goat-mcp/v1
kind: Upstream
metadata: {name: notes}
spec: {transport: {command: notes-server, args: [-v]}, timeout_s: 3}
"""
TOOLSET = """\
apiVersion: goat-mcp/v1
kind: Toolset
metadata: {name: mine}
spec: {tools: [Read, weather, {kind: Tool, name: bash, package: "@goondan/base"}, {ref: {kind: Tool, name: weather}}]}
"""
PROFILE = """\
apiVersion: goat-mcp/v1
kind: Profile
metadata: {name: quiet}
spec: {read_only: true, tools: {deny: [Bash]}}
"""
AGENT = """\
apiVersion: goat-mcp/v1
kind: Agent
metadata: {name: guide, description: Plans a walk.}
spec: {prompts: {systemPrompt: Plan walks., systemRef: ./tool.sh}, tools: [Read, {ref: Tool/weather}, "Tool/weather"]}
"""
GOOD = {
    "tool": TOOL,
    "whole-tool": WHOLE_TOOL,
    "upstream": UPSTREAM,
    "toolset": TOOLSET,
    "profile": PROFILE,
    "agent": AGENT,
}


def put(folder: Path, text: str | bytes, name: str = "tool.yaml") -> Path:
    """A directory with a manifest, and with what its entry may name beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "handlers.py").write_text("handlers = {'today': print}\n")
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file
