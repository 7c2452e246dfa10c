"""Serving over stdio: reading, checking and writing frames, and the fast path of plain calls."""
