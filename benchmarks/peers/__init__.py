"""The same jobs as an expert in another tool would do them; `python -m benchmarks.peers` runs one.

Modules whose tool is not installed with aioflow begin with an underscore: nobody else imports them.
"""
