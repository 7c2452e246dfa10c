#!/usr/bin/env python3
"""A PreToolUse hook for Bash: `git clean` only says what it would remove; and it thinks that installing is for root."""

import json
import sys

REWRITES = {"git clean": "git clean --dry-run", "make install": "sudo make install"}

call = json.load(sys.stdin)
command = call["tool_input"]["command"]
for start, better in REWRITES.items():
    if command.startswith(start) and not command.startswith(better):
        rewritten = {**call["tool_input"], "command": command.replace(start, better, 1)}
        print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": rewritten}}))
