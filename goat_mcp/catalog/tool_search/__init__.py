"""Finding tools by what they are for: words, their weights, and what is shown of a tool that was found (DEF-4)."""
