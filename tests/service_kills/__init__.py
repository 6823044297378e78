"""Kills of a service: `aioflow serve` is killed at every declared moment and at random; an oracle counts.

`python -m tests.service_kills --random 100` is the long form; `tests/test_service_kills.py` runs a short one.
"""
