"""The permission rules of a user: listed, explained, and changed in their files; for commands and the page."""
