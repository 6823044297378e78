"""Runs of compiled programs: their streams, steps, calls, permits and ends."""
