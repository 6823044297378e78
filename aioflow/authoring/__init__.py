"""The interface for authors of operators, functions and services."""
