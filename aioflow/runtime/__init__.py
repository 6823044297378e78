"""Runs of compiled programs: streams, steps, calls, permits, and how everything ends."""
