"""Which options of allow-listed programs stay within what the program's bare name suggests (R-SHELL-4)."""
