"""Requests into one upstream, and what comes back. Which connection they take is decided above."""
