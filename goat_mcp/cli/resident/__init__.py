"""Processes of ours that stay in the background."""
