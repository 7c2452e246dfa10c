"""The record of calls (`goat-mcp audit`): one line before a call has any effect, one after it.

Modules: `log` is what the pipeline writes to, `chain` the file with its hashes, `rotation` its names. Readers, loaded
by the command line only: `lines`, `verify`, `recorded_calls`.
"""

from goat_mcp.calls.audit.log import AuditLog, Decided

__all__ = ["AuditLog", "Decided"]
