"""The web page: what waits, what runs and what was done, for the owner (design D18)."""
