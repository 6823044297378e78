"""A service on a virtual clock for a day: tasks that run every minute, and a web site with faults.

`python -m tests.service_soak --hours 24 --tasks 50` is the long form; `tests/test_service_soak.py` runs a
short one.
"""
