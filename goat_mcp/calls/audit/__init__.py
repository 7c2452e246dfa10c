"""The record of calls (`goat-mcp audit`): one line before a call has any effect, and one after it.

The pipeline writes to `log`; `chain` is the file with its hashes. `records` and `verify` read it, for the command line.
"""

from goat_mcp.calls.audit.log import AuditLog, Decided

__all__ = ["AuditLog", "Decided"]
