"""Keys of calls under a job: the same whenever and wherever a plan is read."""

from __future__ import annotations

from pathlib import Path

import pytest

import aioflow
from aioflow.wrappers.inheritance import resolve
from aioflow.wrappers.recorded import _stage_of

PLANS = sorted((Path(aioflow.__file__).parent / "plans").rglob("wrappers.plan"))


def stages(text: str) -> dict[str, str]:
    program = aioflow.loads(text)
    return {
        item.name: _stage_of(resolve(item.name, program)) for item in program.items if item.kind == "WRAPPER"
    }


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.parent.name)
def test_a_wrapper_has_one_key_however_often_and_wherever_its_text_is_read(path: Path) -> None:
    text = f"{path.read_text()}\nPLAN p {{ BODY {{ }} }}\n"
    found = stages(text)
    assert found
    assert stages(f"# moved\n\n{text}") == found
    assert len(set(found.values())) == len(found)


def test_a_wrapper_with_another_grammar_has_another_key() -> None:
    text = """GRAMMAR g {{ rule r : x is n=[0-9]{} end }}
WRAPPER w
{{
  GET: "http://a.example/"
  READ: grammar g
  n: char
}}
PLAN p {{ BODY {{ }} }}
"""
    assert stages(text.format("+")) != stages(text.format("*"))
