"""What an upstream lists, entry by entry: drained within bounds, checked, and as far as it goes passed on."""
