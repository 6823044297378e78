"""The script language of code blocks and predicates: small, safe, never Python's `eval`."""
