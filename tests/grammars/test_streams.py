"""Sources that arrive in pieces: records that the rest cannot change are there before it."""

import tracemalloc
from collections.abc import Iterator

import pytest

from aioflow.grammars import ParseError, ParseLimits, SettledRecord, compile

LINES = r"""
strict rule entry : record is time=[0-9:]+ ' ' text=[^\n]+ '\n' do println(time); end end
strict rule log : list is (list += entry() | [^\n]* '\n')* end
"""
TAGGED = """
rule item : record is '<b>' name=.* '</b>' .* '$' price=[0-9.]+ end
rule items : list is (list += item())+ end
"""


def values(records: list[SettledRecord]) -> list[object]:
    return [each.value for each in records]


def test_a_record_is_settled_with_the_first_character_after_it() -> None:
    stream = compile(LINES).stream("log")
    assert stream.feed("10:00 begins\n") == []
    assert values(stream.feed("1")) == [{"time": "10:00", "text": "begins"}]
    assert stream.feed("0:01 goes on\n---\n") == [
        SettledRecord("list", {"time": "10:01", "text": "goes on"}, 13, 27)
    ]
    assert stream.finish().value == [
        {"time": "10:00", "text": "begins"},
        {"time": "10:01", "text": "goes on"},
    ]
    assert stream.last_records() == []


def test_the_end_settles_the_last_record() -> None:
    stream = compile(LINES).stream("log")
    assert stream.feed("10:00 begins\n") == []
    stream.finish()
    assert values(stream.last_records()) == [{"time": "10:00", "text": "begins"}]


def test_a_record_that_could_still_grow_is_not_settled() -> None:
    stream = compile(TAGGED).stream("items")
    assert stream.feed("<p><b>Siena</b> only $1") == []
    assert stream.feed("99") == []
    assert values(stream.feed("!")) == [{"name": "Siena", "price": "199"}]


def test_code_of_a_settled_record_runs_at_once() -> None:
    seen: list[str] = []
    grammar = compile(
        "strict rule entry is x=[0-9]+ '\\n' do note(x); end end strict rule log is (list += entry())* end",
        functions={"note": seen.append},
    )
    stream = grammar.stream("log")
    stream.feed("1\n2\n3")
    assert seen == ["1", "2"]
    stream.feed("\n")
    stream.finish()
    assert seen == ["1", "2", "3"]


def test_the_pieces_may_end_anywhere() -> None:
    source = "--<b>Siena</b> only $199!<i><b>3c</b> $399.50, <b>Revo"
    grammar = compile(TAGGED)
    whole = grammar.parse(source, "items")
    for size in range(1, len(source)):
        stream = grammar.stream("items")
        settled = []
        for place in range(0, len(source), size):
            settled += stream.feed(source[place : place + size])
        assert stream.finish() == whole
        assert values(settled + stream.last_records()) == whole.value


def endless(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"{number}:00 line {number}\n" * 20


def test_a_long_stream_takes_no_memory_if_it_keeps_nothing() -> None:
    grammar = compile(LINES.replace("do println(time); end", ""))
    stream = grammar.stream("log", keeps=False)
    found = 0
    for piece in endless(50):  # what the matcher learns is not counted
        found += len(stream.feed(piece))
    tracemalloc.start()
    for piece in endless(1000):
        found += len(stream.feed(piece))
    growth, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == 21_000 - 1
    assert growth < 20_000


def test_a_long_stream_keeps_no_skipped_spans() -> None:
    stream = compile(TAGGED).stream("items", keeps=False)
    piece = "--<b>Siena</b> only $199!--" * 20
    for _ in range(50):
        stream.feed(piece)
    tracemalloc.start()
    for _ in range(500):
        assert len(stream.feed(piece)) == 20
    growth, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert growth < 20_000


def test_records_before_a_failure_are_settled() -> None:
    grammar = compile(r"strict rule entry is x=[0-9]+ '\n' end strict rule log is (list += entry())* end")
    stream = grammar.stream("log")
    assert values(stream.feed("1\n2\n3\n")) == ["1\n", "2\n"]
    with pytest.raises(ParseError) as failure:
        stream.feed("x")
    assert failure.value.offset == 6


def test_a_grammar_whose_end_decides_settles_nothing_before_it() -> None:
    grammar = compile("""
        strict rule r : list is ((list += digit())+ '!' | [0-9]+) end
        strict rule digit is [0-9] end
    """)
    stream = grammar.stream("r")
    assert stream.feed("1234") == []
    assert stream.finish().value == []
    stream = grammar.stream("r")
    assert stream.feed("1234") == []
    assert values(stream.feed("!")) == ["1", "2", "3", "4"]
    assert stream.finish().value == ["1", "2", "3", "4"]


def test_a_matcher_that_learns_anew_goes_on_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = compile(TAGGED + "rule nest is '(' (nest() | accept [^()]* if $$.length < 9;)* ')' end")
    sources = {"items": "<b>Siena</b> only $199!<i><b>3c</b> $399.50, " * 20, "nest": "((a)(b(cd)e)" * 12}
    sources["nest"] += ")" * 12
    whole = {start: grammar.parse(source, start) for start, source in sources.items()}
    monkeypatch.setattr("aioflow.grammars.matching.CACHE_BYTES_AT_MOST", 0)
    for start, source in sources.items():
        stream = grammar.stream(start)
        for place in range(0, len(source), 7):
            stream.feed(source[place : place + 7])
        assert stream.finish() == whole[start]


def test_the_limit_on_time_is_for_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("aioflow.grammars.matching.monotonic", lambda: now[0])
    stream = compile(LINES).stream("log", limits=ParseLimits(seconds=5))
    for minute in range(10):
        now[0] += 60
        stream.feed(f"10:0{minute} begins\n")
    assert len(stream.finish().value) == 10


def test_output_is_taken_piece_by_piece() -> None:
    stream = compile(LINES).stream("log")
    stream.feed("10:00 begins\n10:01 goes on\n")
    assert stream.take_output() == "10:00\n"
    assert stream.finish().output == "10:01\n"


def test_predicates_see_text_over_the_borders_of_pieces() -> None:
    grammar = compile("rule r is (accept list+=[0-9]+ if $$.length == 5; | .)* end")
    stream = grammar.stream("r")
    settled = [each for piece in ("a123", "45b1", "2345", "6 54", "321") for each in stream.feed(piece)]
    found = stream.finish()
    assert found.variables == grammar.parse("a12345b123456 54321", "r").variables
    assert values(settled + stream.last_records()) == found.variables["list"]
