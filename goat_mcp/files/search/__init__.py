"""Finding files by name and by content: ripgrep, or an engine of our own with the same results.

Imports nothing: the process of our own engine starts with parts of this package only.
"""
