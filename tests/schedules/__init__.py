"""Schedules against an oracle that looks at every minute of ten years, and against cronsim.

    python -m tests.schedules --lines 1000 --years 10 --seed 1

Random lines are written together with their meaning, so the parser is compared too. The oracle sees clocks
minute by minute: over a clock change a line with a fixed hour is due once, at the end of the gap if its time
is skipped and at the first of two if it is repeated; a line with `*` or a step in the hour is due whenever
clocks show its time.
"""
