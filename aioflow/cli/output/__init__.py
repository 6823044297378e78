"""The output of commands: rows, progress, logs and traces."""
