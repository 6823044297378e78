"""The meaning of plans, worked out naively: whole relations, no streaming; and random plans to compare with.

Written apart from the engine: it knows plans as data, the identity of tuples and expressions, no more.
"""
