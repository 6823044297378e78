"""HIDDEN items: search forms in plans, asked through wrappers, with answers that survive a crash."""
