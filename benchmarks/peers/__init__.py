"""The same jobs done without aioflow, as an expert in the other tool would."""
