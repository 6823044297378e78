"""Values of the language: as text and JSON, coerced to declared types, and shown to people."""
