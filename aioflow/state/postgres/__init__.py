"""The PostgreSQL driver, with the extra `postgres`."""
