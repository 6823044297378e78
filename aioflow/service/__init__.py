"""The long-running form of aioflow: plans that run on a schedule."""
