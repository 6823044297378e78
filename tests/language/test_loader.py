"""Programs from files: USE, names that must be unique, the main plan, and files that cannot be read."""

import os
from pathlib import Path

import pytest

from aioflow.errors import InputError, PlanError
from aioflow.language import load, loader, loads
from aioflow.plan import Program

OUT = (
    "leads out of the folder of the plan: USE may go up to the folder of aioflow.toml; "
    "put one into a folder that holds both files, or list the other folder under [plans] path"
)
LISTED = "folders elsewhere are listed under [plans] path"


def plan(name: str, *calls: str) -> str:
    return f"PLAN {name}\n{{\n  BODY\n  {{\n" + "".join(f"    {call} ()\n" for call in calls) + "  }\n}\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    monkeypatch.setattr(loader, "LIBRARY", folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, library: Path) -> Path:
    folder = tmp_path / "plans"
    folder.mkdir()
    return folder


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        file = folder / f"{name}.plan"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def names(program: Program) -> list[str]:
    return [each.name for each in program.plans]


def mistakes(folder: Path, file: str = "main.plan") -> list[str]:
    with pytest.raises(PlanError) as caught:
        load(folder / file)
    places = [str(each).partition("\n")[0] for each in caught.value.diagnostics]
    return [place.replace(f"{folder.parent}{os.sep}", "").replace(os.sep, "/") for place in places]


# --- USE ----------------------------------------------------------------------------------------


def test_a_file_is_looked_for_beside_and_then_in_the_library(folder: Path, library: Path) -> None:
    write(folder, main='USE "own.plan"\nuse "both.plan"\nUSE "lib.plan"\n' + plan("main"))
    write(folder, own=plan("own"), both=plan("mine"))
    write(library, both=plan("theirs"), lib=plan("lib"))
    program = load(folder / "main.plan")
    assert names(program) == ["main", "own", "mine", "lib"]
    assert (program.name, program.folder) == ("main", str(folder))


def test_files_are_read_once_and_may_use_each_other(folder: Path) -> None:
    write(folder, main='USE "a.plan"\nUSE "./a.plan"\nUSE "b.plan"\n' + plan("main"))
    write(
        folder, a='USE "b.plan"\nUSE "main.plan"\n' + plan("a"), b='USE "a.plan"\nUSE "b.plan"\n' + plan("b")
    )
    assert names(load(folder / "main.plan")) == ["main", "a", "b"]


def test_a_file_looks_beside_itself(folder: Path, library: Path) -> None:
    write(folder, main='USE "sub/a.plan"\n' + plan("main"))
    write(folder / "sub", a='USE "b.plan"\n' + plan("a"), b=plan("b"))
    write(library, b=plan("library_b"))
    assert names(load(folder / "main.plan")) == ["main", "a", "b"]


def test_files_of_the_library_use_each_other_only(folder: Path, library: Path) -> None:
    write(folder, main='USE "a.plan"\n' + plan("main"), b=plan("mine"))
    write(library, a='USE "b.plan"\n' + plan("a"), b=plan("theirs"))
    assert names(load(folder / "main.plan")) == ["main", "a", "theirs"]


def test_a_text_without_a_folder_uses_the_library(folder: Path, library: Path) -> None:
    write(library, a=plan("a"))
    write(folder, a=plan("b"))
    text = 'USE "a.plan"\n' + plan("main", "a")
    assert names(loads(text)) == ["main", "a"]
    assert names(loads(text, folder=folder)) == ["main", "b"]
    with pytest.raises(PlanError, match=r"there is no file 'b.plan' in the library"):
        loads('USE "b.plan"')


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../secret.plan", f"'../secret.plan' {OUT}"),
        ("sub/../../secret.plan", f"'sub/../../secret.plan' {OUT}"),
        ("../nothing.plan", f"'../nothing.plan' {OUT}"),
        (
            "/etc/passwd",
            f"USE takes a path that begins at the folder of this file, not '/etc/passwd'; {LISTED}",
        ),
        ("~/x.plan", f"USE takes a path that begins at the folder of this file, not '~/x.plan'; {LISTED}"),
        ("C:x.plan", f"USE takes a path that begins at the folder of this file, not 'C:x.plan'; {LISTED}"),
        (r"sub\\x.plan", r"'sub\\x.plan' holds a backslash; folders are parted by '/'"),
        (r"a\u0000b", "a file name cannot hold the character NUL"),
        ("", "USE needs the name of a file"),
        ("folder.plan", "there is no file 'folder.plan' beside this file or in the library"),
        (
            "hosues.plan",
            "there is no file 'hosues.plan' beside this file or in the library; did you mean 'houses.plan'?",
        ),
        ("urls", "there is no file 'urls' beside this file or in the library; did you mean 'urls.plan'?"),
        ("x" * 500, f"there is no file '{'x' * 500}' beside this file or in the library"),
    ],
)
def test_paths_that_lead_nowhere_or_too_far(folder: Path, path: str, message: str) -> None:
    write(folder, main=f'# first\n  USE "{path}"\n' + plan("main"), houses="", urls="")
    write(folder.parent, secret=plan("secret"))
    (folder / "folder.plan").mkdir()
    assert mistakes(folder) == [f"plans/main.plan:2:7: {message}"]


def test_links_cannot_lead_out_of_the_folder(folder: Path) -> None:
    write(folder.parent / "other", secret=plan("secret"))
    (folder / "link.plan").symlink_to(folder.parent / "other" / "secret.plan")
    (folder / "sub").symlink_to(folder.parent / "other")
    write(folder, main='USE "link.plan"\nUSE "sub/secret.plan"\n' + plan("main"))
    assert [each.replace(f"{folder}", "…") for each in mistakes(folder)] == [
        "plans/main.plan:1:5: 'link.plan' " + OUT,
        "plans/main.plan:2:5: 'sub/secret.plan' " + OUT,
    ]


def test_links_inside_the_folder_and_to_it_are_fine(folder: Path) -> None:
    write(folder, main='USE "link.plan"\nUSE "a.plan"\n' + plan("main"), a=plan("a"))
    (folder / "link.plan").symlink_to(folder / "a.plan")
    (folder.parent / "way").symlink_to(folder)
    assert names(load(folder.parent / "way" / "main.plan")) == ["main", "a"]


# --- mistakes -----------------------------------------------------------------------------------


def test_mistakes_of_all_files_are_reported_together(folder: Path) -> None:
    write(
        folder, main='USE "a.plan"\n' + plan("p", "a b"), a='USE "none.plan"\nUSE x\nPLAN q { BODY { (} }\n'
    )
    assert mistakes(folder) == [
        "plans/main.plan:6:7: expected '(' after 'a', found 'b'",
        "plans/a.plan:1:5: there is no file 'none.plan' beside this file or in the library",
        "plans/a.plan:2:5: expected a file in quotes after 'USE', found 'x'",
        "plans/a.plan:3:17: expected a statement, found '('",
    ]


def test_a_name_can_be_given_once(folder: Path) -> None:
    write(folder, main='USE "a.plan"\n' + plan("main") + plan("Twice"), a=plan("twice"))
    assert mistakes(folder) == [
        "plans/a.plan:1:6: PLAN 'twice' stands here and at plans/main.plan:8:6; a name can be given once"
    ]


def test_bytes_that_are_not_utf8_are_shown_in_their_file(folder: Path) -> None:
    (folder / "main.plan").write_bytes(plan("main").encode() + b"\n# caf\xe9\n")
    assert mistakes(folder) == ["plans/main.plan:8:6: byte E9 is not UTF-8"]


# --- the file itself ----------------------------------------------------------------------------


def test_a_file_that_is_not_there(folder: Path) -> None:
    write(folder, houses=plan("houses"))
    with pytest.raises(InputError) as caught:
        load(folder / "huoses.plan")
    assert str(caught.value) == f"there is no file {folder / 'huoses.plan'}; did you mean 'houses.plan'?"


def test_a_folder_instead_of_a_file(folder: Path) -> None:
    write(folder, houses=plan("houses"), urls=plan("urls"))
    with pytest.raises(InputError) as caught:
        load(folder)
    assert str(caught.value) == f"{folder} is a folder, not a plan file; in it are houses.plan, urls.plan"


def test_a_file_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The superuser may read everything, so the refusal is made up.
    def refuse(file: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(file))

    write(folder, main='USE "a.plan"\n' + plan("main"), a=plan("a"))
    text = (folder / "main.plan").read_text("utf-8")
    monkeypatch.setattr(loader, "_read", refuse)
    with pytest.raises(InputError) as caught:
        load(folder / "main.plan")
    assert str(caught.value) == f"there is no permission to read {folder / 'main.plan'}"
    with pytest.raises(PlanError) as found:
        loads(text, folder=folder)
    assert (
        str(found.value).partition("\n")[0]
        == f"<plan>:1:5: cannot read {folder / 'a.plan'}: Permission denied"
    )


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_a_name_that_no_file_can_have(name: str) -> None:
    with pytest.raises(InputError, match="cannot read"):
        load(name)


def test_a_file_that_is_too_large(folder: Path) -> None:
    (folder / "main.plan").write_bytes(b"# " * 3_000_000)
    assert mistakes(folder) == [
        "plans/main.plan:1:1: the file has 5,000,001 bytes; at most 5,000,000 are allowed"
    ]


# --- the main plan ------------------------------------------------------------------------------


def test_the_plan_asked_for_is_the_main_plan(folder: Path) -> None:
    write(folder, main='USE "a.plan"\n' + plan("main") + plan("other"), a=plan("third"))
    assert load(folder / "main.plan", plan="OTHER").name == "other"
    assert load(folder / "main.plan", plan="third").name == "third"
    with pytest.raises(InputError) as caught:
        load(folder / "main.plan", plan="otter")
    assert str(caught.value).endswith(
        "main.plan has no plan 'otter'; did you mean 'other'? (there are: main, other, third)"
    )


def test_else_the_one_named_like_the_file(folder: Path) -> None:
    write(folder, houses=plan("first") + plan("Houses", "first") + plan("third"))
    assert load(folder / "houses.plan").name == "Houses"


def test_else_the_only_one_that_no_other_calls() -> None:
    assert loads(plan("a", "B") + plan("b", "b", "c") + plan("c")).name == "a"


def test_else_it_must_be_told(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        loads(plan("a") + plan("b"), "two.plan")
    assert str(caught.value) == (
        "two.plan has no main plan: none is called by another; ask for one by name (there are: a, b)"
    )
    with pytest.raises(InputError) as caught:
        loads(plan("a", "b") + plan("b", "a"), "two.plan")
    assert str(caught.value) == (
        "two.plan has no main plan: every plan is called by another; ask for one by name (there are: a, b)"
    )
    with pytest.raises(InputError) as caught:
        loads("# nothing\n", "empty.plan")
    assert str(caught.value) == "empty.plan has no plan"


def test_a_file_without_plans_can_be_read_where_any_plan_will_do(folder: Path) -> None:
    item = 'WRAPPER w ()\n{\n  GET: "http://example.org/"\n  title: "h1"\n}\n'
    write(folder, items=item, used='USE "other.plan"\n' + item, other=plan("third"), empty="# nothing\n")
    items = load(folder / "items.plan", any_plan=True)
    assert (items.plans, [each.name for each in items.items]) == ((), ["w"])
    assert items.main.statements == ()
    assert load(folder / "used.plan", any_plan=True).name == "third"
    for name in ("items", "used"):
        with pytest.raises(InputError, match="has no plan"):
            load(folder / f"{name}.plan")
    with pytest.raises(InputError, match="has no plan"):
        load(folder / "empty.plan", any_plan=True)


# --- the folder of aioflow.toml, and the plan path ------------------------------------------------


def test_a_file_may_be_above_within_the_folder_of_the_settings(folder: Path) -> None:
    (folder / "aioflow.toml").touch()
    write(folder, shared='USE "houses/own.plan"\n' + plan("shared"))
    write(folder / "houses", own=plan("own"))
    write(folder / "houses" / "deep", main='USE "../../shared.plan"\nUSE "../own.plan"\n' + plan("main"))
    assert names(load(folder / "houses" / "deep" / "main.plan")) == ["main", "shared", "own"]


def test_a_file_by_two_spellings_is_read_once(folder: Path) -> None:
    (folder / "aioflow.toml").touch()
    (folder / "link.plan").symlink_to(folder / "shared.plan")
    write(folder, shared='USE "sub/main.plan"\n' + plan("shared"))
    uses = ["../shared.plan", "./.././shared.plan", "../sub/../shared.plan", "../link.plan"]
    write(folder / "sub", main="".join(f'USE "{use}"\n' for use in uses) + plan("main"))
    program = load(folder / "sub" / "main.plan")
    assert names(program) == ["main", "shared"]
    assert [str(each.span.source.name) for each in program.plans if each.span][1] == str(
        folder / "shared.plan"
    )


def test_the_nearest_settings_bound_use(folder: Path) -> None:
    (folder / "aioflow.toml").touch()
    write(folder, secret=plan("secret"))
    write(folder / "sub", main='USE "../secret.plan"\n' + plan("main"))
    (folder / "sub" / "aioflow.toml").touch()
    assert mistakes(folder, "sub/main.plan") == [
        "plans/sub/main.plan:1:5: '../secret.plan' leads out of plans/sub, the folder of aioflow.toml: USE "
        "stays inside of it; put aioflow.toml into a folder that holds both files, or list the other folder "
        "under [plans] path"
    ]


def test_links_cannot_lead_out_of_the_folder_of_the_settings(folder: Path) -> None:
    (folder / "aioflow.toml").touch()
    write(folder.parent / "other", secret=plan("secret"))
    (folder / "link.plan").symlink_to(folder.parent / "other" / "secret.plan")
    write(folder / "sub", main='USE "../link.plan"\n' + plan("main"))
    (found,) = mistakes(folder, "sub/main.plan")
    assert "'../link.plan' leads out of" in found


def test_files_are_looked_for_in_the_plan_path(folder: Path, library: Path) -> None:
    (folder / "aioflow.toml").write_text('[plans]\npath = ["common", "../elsewhere"]\n')
    write(folder / "common", a='USE "neighbour.plan"\n' + plan("common_a"), neighbour=plan("neighbour"))
    write(folder.parent / "elsewhere", a=plan("other_a"), b='USE "lib.plan"\n' + plan("b"))
    write(library, a=plan("library_a"), lib=plan("lib"))
    write(folder / "sub", main='USE "a.plan"\nUSE "b.plan"\nUSE "own.plan"\n' + plan("main"), own=plan("own"))
    assert names(load(folder / "sub" / "main.plan")) == ["main", "common_a", "b", "own", "neighbour", "lib"]


def test_a_file_that_is_nowhere_is_told_with_all_places(folder: Path) -> None:
    (folder / "aioflow.toml").write_text('[plans]\npath = ["common"]\n')
    write(folder, main='USE "huoses.plan"\n' + plan("main"))
    write(folder / "common", houses=plan("houses"))
    assert mistakes(folder) == [
        "plans/main.plan:1:5: there is no file 'huoses.plan' beside this file, in the folders of [plans] "
        "path or in the library; did you mean 'houses.plan'?"
    ]


def test_a_folder_of_the_plan_path_that_is_missing_is_told(folder: Path) -> None:
    (folder / "aioflow.toml").write_text('[plans]\npath = ["comon"]\n')
    write(folder, main='USE "houses.plan"\n' + plan("main"))
    (found,) = mistakes(folder)
    assert found.startswith("plans/main.plan:1:5: there is no file 'houses.plan', and no folder ")
    assert found.endswith("comon, which [plans] path names")


def test_a_file_in_the_plan_path_cannot_leave_its_folder(folder: Path) -> None:
    (folder / "aioflow.toml").write_text('[plans]\npath = ["../elsewhere"]\n')
    write(folder, main='USE "a.plan"\n' + plan("main"))
    write(folder.parent / "elsewhere", a='USE "../plans/secret.plan"\n' + plan("a"))
    assert "leads out of the folder of the plan" in mistakes(folder)[0]


def test_a_file_in_a_folder_of_the_library_finds_its_neighbours(folder: Path, library: Path) -> None:
    write(folder, main='USE "houses/monitor.plan"\n' + plan("main"), wrappers=plan("mine"))
    write(
        library / "houses", monitor='USE "wrappers.plan"\nUSE "diff.plan"\n' + plan("m"), wrappers=plan("w")
    )
    write(library, diff=plan("diff"))
    assert names(load(folder / "main.plan")) == ["main", "m", "w", "diff"]


def test_the_plans_of_the_library_can_be_used(tmp_path: Path) -> None:
    write(tmp_path, main='USE "homeseekers/monitor.plan"\n' + plan("main"))
    assert "main" in names(load(tmp_path / "main.plan"))


def test_a_link_that_leads_to_itself_is_no_file(folder: Path) -> None:
    (folder / "loop.plan").symlink_to(folder / "loop.plan")
    write(folder, main='USE "loop.plan"\n' + plan("main"))
    assert "there is no file 'loop.plan'" in mistakes(folder)[0]
