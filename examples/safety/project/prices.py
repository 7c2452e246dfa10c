"""What things cost."""

LEMON = 0.80
BELL = 12.50
