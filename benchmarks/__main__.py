"""`python -m benchmarks …` is `aioflow bench …`."""

import sys

from aioflow.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench"]
    main()
