"""Web search: what a provider is asked, what it answers, and what of that is shown."""
