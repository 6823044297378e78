"""The channel `notify`: chats, push services and webhooks through apprise."""
