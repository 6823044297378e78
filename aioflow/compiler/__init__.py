"""The analysis of a program before it runs: the meaning of its names, every schema, every mistake."""
