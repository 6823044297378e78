"""Experiments on speed and memory, one module for each question: `python -m benchmarks [name …]`."""
