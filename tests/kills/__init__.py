"""The kill harness: a monitoring plan is killed, at every declared moment and at random; an oracle counts.

`python -m tests.kills --count 200` is the long form; `tests/test_kills.py` runs a short one.
"""
