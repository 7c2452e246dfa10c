"""The network: the guarded HTTP client, pages, search, messaging."""
