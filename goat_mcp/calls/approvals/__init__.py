"""What waits for a person: the queue, asking about a call, and deciding."""
