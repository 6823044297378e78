"""What a plan tells people: channels that deliver the messages of an outbox, and what they look like."""
