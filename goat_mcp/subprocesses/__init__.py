"""Child processes: how they start, how their output is kept, and how they end with everything they started."""
