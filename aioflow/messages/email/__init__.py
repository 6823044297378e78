"""The channel `email`: SMTP servers and Maildirs."""
