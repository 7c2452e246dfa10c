"""How bytes are shown: encodings, line ends, line index, images, PDF, notebooks. Paths and sessions live elsewhere."""
