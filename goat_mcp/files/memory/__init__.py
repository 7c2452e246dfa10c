"""What models write down for later sessions (tool `memento__note`): where it lies and how it is listed."""
