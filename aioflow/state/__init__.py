"""What a plan remembers and whom it tells: databases, the transaction of a run, and its outbox."""
