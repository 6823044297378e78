"""Work for other processes: calls that keep a processor busy, or that must not outlast a limit.

The processes are our own, `python -m aioflow.processes`. Those of `multiprocessing` and of anyio load the
main module of the program once more, and a script without a guard would run twice. `pool` is this side,
`__main__` the other one, `frames` what they say to each other.
"""

from aioflow.processes.pool import Processes

__all__ = ["Processes"]
