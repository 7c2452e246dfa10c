"""The approval queue as people see it: what waits, from every store that has something, and deciding about it."""
