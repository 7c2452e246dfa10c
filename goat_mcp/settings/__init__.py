"""Everything a user can configure, and where it comes from."""
