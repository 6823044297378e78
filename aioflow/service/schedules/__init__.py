"""Schedules: lines as in crontab(5) and intervals, their times over clock changes, and their description."""
