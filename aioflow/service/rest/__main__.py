"""Prints docs/rest.md."""

import sys

from aioflow.service.rest.reference import reference

sys.stdout.write(reference())
