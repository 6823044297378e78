"""Random plans on a real database, run after run, and dictionaries that tell what must become of it."""
