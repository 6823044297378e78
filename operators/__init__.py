"""The operator library, imported as `aioflow.operators`."""
