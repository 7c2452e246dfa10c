"""What a gateway tells of itself, for `goat-mcp status`, `goat://status` and `doctor`. It changes nothing."""
