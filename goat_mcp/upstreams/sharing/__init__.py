"""One process of an upstream for all sessions of a user: the broker that owns it, and the session's way to it."""
