"""What a shell command printed, in fewer words for the model: one program's output, one file. Pure text work.

Only output whose shape is known to the last line is compressed, and whoever asks for it says so and keeps the whole
in a file; neither happens here. Of what a background task prints (TaskOutput) nothing is compressed: it is read in
pieces, while it grows, and a piece of a program's output has no shape to know it by.
Source: goa, "Output Compression".
"""
