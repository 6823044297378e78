"""The task database: tasks, the versions of their plans, their occurrences, alerts and tokens."""
