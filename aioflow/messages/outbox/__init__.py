"""The outbox: messages wait in the database of their run until a courier has delivered them."""
