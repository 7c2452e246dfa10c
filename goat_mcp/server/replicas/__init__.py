"""One of several servers that serve the same clients: what it takes from the others, and what it passes on to them."""
