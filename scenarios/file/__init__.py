"""The scenario file: what it may say, what is wrong with one, and where in the text."""
