"""The library of grammars needs no engine and no web."""

import subprocess
import sys

PROGRAM = """
import sys
from aioflow.grammars import Grammar, ParsedSource, compile
assert compile("rule a is x='b' end").parse("abc").variables == {"x": "b"}
unwanted = ("aiohttp", "aioflow.runtime", "aioflow.engine")
print([name for name in sys.modules if name.startswith(unwanted)])
"""


def test_grammars_import_neither_the_runtime_nor_a_web_client() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
