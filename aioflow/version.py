"""The version, read by the build and by `aioflow --version`."""

__version__ = "0.1.0"
