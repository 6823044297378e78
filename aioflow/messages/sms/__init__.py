"""The channel `phone`: text messages."""
