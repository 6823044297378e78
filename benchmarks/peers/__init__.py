"""The same jobs as an expert in another tool would do them; `python -m benchmarks.peers` runs one.

Modules whose tool aioflow does not install begin with an underscore: only their own process imports them.
"""
