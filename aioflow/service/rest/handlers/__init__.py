"""The routes of the REST interface, by subject. Each module has a table of routes."""
