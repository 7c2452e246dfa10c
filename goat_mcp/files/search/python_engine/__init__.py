"""A search engine without ripgrep: the same answers from a process that can be killed.

`command` is what the server knows of it; everything else here runs in that process.
"""
