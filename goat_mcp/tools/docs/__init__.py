"""What there is to read about a tool beyond its definition: `TOOL.md` beside this file, and the page made of it.

None of it is sent with `tools/list`, and nothing here is loaded until somebody asks for a page.
"""
