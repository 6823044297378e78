"""Watches of other programs, turned into plans with schedules."""
