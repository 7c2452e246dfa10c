"""The documentation of tools: one `TOOL.md` each, and `page`, which makes a whole page of it.

Nothing here is sent with `tools/list`, or loaded before somebody asks for a page.
"""
