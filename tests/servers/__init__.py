"""Servers on loopback for tests: PostgreSQL, an SMTP server, an HTTP gateway; they can be told to fail."""
