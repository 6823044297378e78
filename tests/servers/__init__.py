"""Real servers on loopback for tests: PostgreSQL, an SMTP server, an HTTP gateway; all can be told to fail."""
