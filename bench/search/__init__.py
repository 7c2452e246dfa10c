"""How well search finds the right one of a thousand real tools, and what its answers cost, beside a peer's."""
