"""Which tools exist, and which of them one client sees."""
