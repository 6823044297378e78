"""Registrable domains by the Public Suffix List: `example.co.uk` of `www.example.co.uk`.

The list is a snapshot of 9,762 rules beside this module; nothing is fetched. tldextract would bring requests,
filelock and two more packages, and asks the network unless told not to; publicsuffixlist does the same as the
30 lines here, and brings a release a day.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_LIST = Path(__file__).with_name("public_suffix_list.dat")


def registrable_domain(host: str) -> str | None:
    """The domain under which a host stands; None for an address, a public suffix, and a name without dots.

    `host` is in lower case and ASCII. All of the list counts, as for browsers: also suffixes of companies.
    """
    labels = host.split(".")
    if ":" in host or labels[-1].isdecimal():
        return None
    length = _suffix_length([_decoded(label) for label in labels])
    return ".".join(labels[-length - 1 :]) if length < len(labels) else None


def _suffix_length(labels: list[str]) -> int:
    """How many labels the public suffix has: those of the longest rule, or the last where there is none."""
    rules = _rules()
    for start in range(len(labels)):
        name = ".".join(labels[start:])
        if f"!{name}" in rules:
            return len(labels) - start - 1
        if name in rules or ".".join(["*", *labels[start + 1 :]]) in rules:
            return len(labels) - start
    return 1


@cache
def _rules() -> frozenset[str]:
    lines = _LIST.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("//"))


def _decoded(label: str) -> str:
    """A label as the list has it, in its own script."""
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode().decode("punycode")
    except UnicodeError:
        return label
