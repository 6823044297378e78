"""A soak in virtual time: a site that lives, breaks and is redesigned, and somebody who watches it.

    python -m tests.soak --days 200 --items 20 --seed 1

Every true change must be told once, however late, and nothing that did not happen.
"""
