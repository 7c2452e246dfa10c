"""Calls that run a command in the user's shell: how long it may take, and what the caller is told of it.

Bash itself is a tool (`goat_mcp.tools.bash`); how processes start, print and end lies in `goat_mcp.processes`.
"""
