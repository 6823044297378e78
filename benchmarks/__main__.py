"""`python -m benchmarks [name …] [--quick] [--json FILE]`: exit status 1 when a goal was missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.experiment import NAMES, Effort, Finding, find
from benchmarks.report import as_json, show


def main(arguments: Sequence[str] | None = None) -> int:
    """Run experiments, show what they found, and return the exit status."""
    options = _parser().parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        print(f"unknown experiment {unknown[0]!r} (there are: {', '.join(NAMES)})", file=sys.stderr)
        return 2
    findings = [_run(name, Effort(options.quick)) for name in options.names or NAMES]
    show(findings, quick=options.quick)
    if options.json is not None:
        options.json.write_text(as_json(findings))
    missed = any(line.reached is False for finding in findings for line in finding.lines)
    return 1 if missed and not options.quick else 0


def _run(name: str, effort: Effort) -> Finding:
    found = find(name)
    print(f"{name}: {found.question}", file=sys.stderr, flush=True)
    return found.run(effort)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed and memory.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"experiments: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that all works, no figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings there too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
