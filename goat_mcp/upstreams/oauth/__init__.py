"""Logging in to HTTP upstreams. Loaded once one of them asks for a login, or has one stored (AUT-1 to AUT-3)."""
