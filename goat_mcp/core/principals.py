"""Who a call is made for. Over HTTP a profile's token makes a principal of its own beside these."""

from __future__ import annotations

LOCAL = "local"
"""Whoever started this process, and whatever has no other principal."""
OPERATOR = "operator"
"""Who holds the server's own token."""
ANONYMOUS = "anonymous"
"""Whoever reaches a server that wants no token."""
USERS = frozenset({LOCAL, OPERATOR, ANONYMOUS})
"""Those who stand for the user, not for a profile: what is the user's own in every workspace is theirs to see."""
OWNERS = frozenset({LOCAL, OPERATOR})
"""Those who run goat-mcp: what serves all its clients is theirs to decide."""
