"""What a gateway reports about itself, for `goat-mcp status`, `goat://status` and `doctor`. It changes nothing."""
