"""What can be known of a program before it runs: what its names mean, every schema, every mistake."""
