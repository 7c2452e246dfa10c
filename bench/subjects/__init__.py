"""One subject a file: `measure(bench)` gives the rows of its part of the table."""
