"""What an upstream asks and tells while a request of a client is under way, and the client that hears it."""
