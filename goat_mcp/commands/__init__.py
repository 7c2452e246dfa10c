"""Running shell commands: how long one may take, in which sandbox, and what its caller gets.

`shell/` analyses scripts for rules, `sandbox/` confines processes, `tasks/` are background tasks, and `compression/`
shortens output. The tool is `goat_mcp.tools.bash`; processes are started and watched in `goat_mcp.processes`.
"""
