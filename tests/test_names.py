"""One name, one meaning: no two public classes of the product are called alike."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINKS = tuple(ROOT / "aioflow" / name for name in ("benchmarks", "operators", "plans"))


def product_modules() -> list[Path]:
    found = [*(ROOT / "aioflow").rglob("*.py"), *(ROOT / "operators").rglob("*.py")]
    return sorted(path for path in found if not any(path.is_relative_to(link) for link in LINKS))


def public_classes(path: Path) -> list[str]:
    body = ast.parse(path.read_text()).body
    return [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in product_modules():
        for name in public_classes(path):
            homes[name].append(path.relative_to(ROOT).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_no_file_name_begins_like_the_folder_that_it_could_stand_in() -> None:
    """`sqlite_rows.py` beside `sqlite/` is `sqlite/rows.py`."""
    folders = {path.parent for path in product_modules()}
    prefixed = [
        path.relative_to(ROOT).as_posix()
        for path in product_modules()
        if any(path.stem.startswith(f"{folder.name}_") for folder in folders if folder.parent == path.parent)
    ]
    assert prefixed == []
