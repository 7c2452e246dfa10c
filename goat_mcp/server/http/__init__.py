"""Serving over streamable HTTP: connections, tokens, limits."""
