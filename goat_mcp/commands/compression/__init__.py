"""Shorter output of shell commands for a model: pure text work, one compressor for each kind of program.

Only output whose shape is known to the last line is compressed. The caller announces it and keeps the whole in a file.
The output of background tasks is never compressed: it is read in pieces, and a piece has no known shape.
Source: goa, "Output Compression".
"""
