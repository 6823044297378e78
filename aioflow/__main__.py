"""`python -m aioflow`: the command line."""

from aioflow.cli import main

if __name__ == "__main__":
    main()
