"""What was approved of upstreams' definitions, and what may be shown and called of those that have changed."""
