"""The JSON reader: paths, values read while the page arrives, and JSON lines."""
