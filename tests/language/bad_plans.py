"""Texts with mistakes of bytes, tokens, structure and limits, and every message about them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BadText:
    """A text with mistakes, and all messages about it as `line:column: message`."""

    name: str
    text: str | bytes
    messages: list[str]


def body(*lines: str) -> str:
    """A plan whose statements begin in line 5, column 5."""
    return "PLAN p\n{\n  BODY\n  {\n" + "".join(f"    {line}\n" for line in lines) + "  }\n}\n"


def header(*lines: str) -> str:
    """A plan whose header begins in line 3, column 3."""
    return "PLAN p\n{\n" + "".join(f"  {line}\n" for line in lines) + "  BODY { }\n}\n"


BYTES = [
    BadText(
        "a byte that is not UTF-8",
        b'PLAN p\n{\n  BODY { log (a, "caf\xe9") }\n}\n',
        ["3:22: byte E9 is not UTF-8"],
    ),
    BadText(
        "several bytes that are not UTF-8",
        b"# \xf0\x9f\x98 caf\xe9\nPLAN p { BODY { op (a : b) } }\n",
        ["1:3: bytes F0 9F 98 are not UTF-8", "1:10: byte E9 is not UTF-8"],
    ),
    BadText(
        "UTF-16", "PLAN p { BODY { } }".encode("utf-16"), ["1:1: this is UTF-16; save the file as UTF-8"]
    ),
    BadText(
        "a NUL in a name",
        "PLAN p { BODY { op (a\0b : c) } }",
        ["1:22: character U+0000 (NUL) cannot stand in a plan"],
    ),
    BadText(
        "a form feed in a string",
        body('op ("a\fb" : c)'),
        ["5:11: character U+000C (FORM FEED) cannot stand in a plan"],
    ),
    BadText(
        "an escape character in a comment",
        "# \x1b[31mred\nPLAN p { BODY { } }",
        ["1:3: character U+001B (ESCAPE) cannot stand in a plan"],
    ),
    BadText(
        "lines that end with a carriage return alone",
        "PLAN p { BODY { op (a : b)\r op (b : , c) } }",
        ["2:10: expected an output or ')' after ':', found ','"],
    ),
    BadText("half a character", body('op ("\ud800" : c)'), ["5:10: character U+D800 cannot stand in a plan"]),
    BadText(
        "a space without width",
        body("op (a,\u200bb : c)"),
        ["5:11: unexpected character U+200B (ZERO WIDTH SPACE)"],
    ),
]

TOKENS = [
    BadText(
        "a string open at the end of its line",
        body('op (a, "abc : b)', "op (b : c)"),
        ['5:12: the string is not closed on its line; text over several lines stands in """…"""'],
    ),
    BadText(
        "a string in three quotes never closed",
        body('op (a, """abc : b)', "op (b : c)"),
        ['5:12: the string is never closed by \'"""\''],
    ),
    BadText(
        "a comment never closed",
        body("op (a : b) /* and so on", "op (b c)"),
        ["5:16: the comment is never closed by '*/'"],
    ),
    BadText(
        "curly quotes",
        body("op (a, “abc” : b)"),
        [
            "5:12: unexpected '“'; strings stand in \"…\" or '…'",
            "5:16: unexpected '”'; strings stand in \"…\" or '…'",
        ],
    ),
    BadText(
        "an unknown escape",
        body(r'op (a, "\d+" : b)'),
        ["5:13: unknown escape '\\d'; a backslash is written '\\\\'"],
    ),
    BadText(
        "an unknown escape in three quotes",
        body(r'op (a, """\ ', '"""', ": b)"),
        ["5:15: unknown escape '\\ '; a backslash is written '\\\\'"],
    ),
    BadText(
        "an escape cut short",
        body(r'op (a, "\u12", "\x" : b)'),
        [
            "5:13: '\\u' needs 4 hexadecimal digits, found '12'",
            "5:21: '\\x' needs 2 hexadecimal digits, found ''",
        ],
    ),
    BadText(
        "an escape for no character",
        body(r'op (a, "\ud800\U00110000" : b)'),
        ["5:13: '\\ud800' is not a character", "5:19: '\\U00110000' is not a character"],
    ),
    BadText(
        "a name that begins with a digit",
        body("op (2nd : b)"),
        ["5:9: '2nd' is neither a number nor a name; names begin with a letter or '_'"],
    ),
    BadText(
        "a number beyond all measure", body("op (a, 1e400 : b)"), ["5:12: the number 1e400 is too large"]
    ),
    BadText(
        "a number of too many digits",
        body(f"op (a, {'9' * 4001} : b)"),
        ["5:12: a number of 4,001 characters is too long; at most 4,000"],
    ),
    BadText(
        "a dollar without a name", body("op (a, $ : b)"), ["5:12: '$' must be followed by a parameter's name"]
    ),
    BadText(
        "marks of another language",
        body("op (a => b)", "op (a @ b : c)"),
        ["5:12: unexpected '>'", "6:11: unexpected '@'"],
    ),
    BadText(
        "a name that is too long",
        body(f"{'o' * 201} (a : b)"),
        ["5:5: the name 'ooooooooooooooooooooooooooooo…' has 201 characters; at most 200 are allowed"],
    ),
    BadText(
        "a backtick left open",
        header("INPUT: a (`left.b)"),
        ["3:13: the name in backticks is not closed on its line"],
    ),
    BadText(
        "an empty name in backticks", header("INPUT: a (``)"), ["3:13: an attribute's name cannot be empty"]
    ),
]

ITEMS = [
    BadText("not a plan at all", "42 is the answer\n", ["1:1: expected PLAN, USE or another item, found 42"]),
    BadText(
        "a statement outside of a plan",
        "select (a : b)\nPLAN p { BODY { } }\n",
        ["1:1: statement 'select' stands outside of any plan"],
    ),
    BadText(
        "a header entry outside of a plan",
        "INPUT: a\n\nPLAN p { BODY { } }\n",
        ["1:1: expected PLAN, USE or another item, found 'INPUT'"],
    ),
    BadText(
        "PLAN misspelt",
        "PLNA p\n{\n  INPUT: a\n  BODY { op (a : b) }\n}\n",
        ["1:1: unknown item kind 'PLNA'; did you mean 'PLAN'?"],
    ),
    BadText(
        "a misspelt keyword without a name",
        "PLNA {\n  BODY { }\n}\n",
        ["1:1: expected a name after 'PLNA'; did you mean 'PLAN'?"],
    ),
    BadText("a plan without a name", "PLAN { BODY { } }\n", ["1:6: expected a name after 'PLAN', found '{'"]),
    BadText(
        "a plan named by a string",
        'PLAN "p" { BODY { } }\n',
        ["1:6: expected a name after 'PLAN', found \"p\""],
    ),
    BadText(
        "a plan without braces",
        "PLAN p\nPLAN q { BODY { } }\n",
        ["1:7: expected '{' after 'p', found the end of the line"],
    ),
    BadText(
        "something between a plan's name and its brace",
        "PLAN p (a, b) { BODY { } }\n",
        ["1:8: expected '{' after 'p', found '('"],
    ),
    BadText(
        "USE without quotes",
        "USE other.plan\nPLAN p { BODY { } }\n",
        ["1:5: expected a file in quotes after 'USE', found 'other'"],
    ),
    BadText(
        "USE without a file",
        "USE\nPLAN p { BODY { } }\n",
        ["1:4: expected a file in quotes after 'USE', found the end of the line"],
    ),
    BadText(
        "an item without a body",
        "WRAPPER search (city)\nPLAN p { BODY { } }\n",
        ["1:22: expected '{' after ')', found the end of the line"],
    ),
    BadText(
        "an item that is not closed",
        'WRAPPER search (city)\n{\n  GET: "}"\n',
        ["2:1: '{' of WRAPPER 'search' is never closed"],
    ),
    BadText("a brace too many", "PLAN p { BODY { } } }\nPLAN q { BODY { } }\n", ["1:21: '}' closes nothing"]),
    BadText(
        "a plan that is not closed",
        "PLAN p\n{\n  BODY\n  {\n    op (a : b)\n  }\n",
        ["2:1: '{' of PLAN 'p' is never closed"],
    ),
    BadText(
        "a plan that is not closed before the next",
        "PLAN p\n{\n  BODY\n  {\n    op (a : b)\n  }\n\nPLAN q\n{\n  BODY { op (a b) }\n}\n",
        [
            "2:1: '{' of PLAN 'p' is not closed before PLAN in line 8",
            "10:16: expected ',', ':' or ')' after 'a', found 'b'",
        ],
    ),
    BadText(
        "a plan in a plan",
        "PLAN p\n{\n  BODY\n  {\n    PLAN q { BODY { } }\n  }\n}\n",
        [
            "2:1: '{' of PLAN 'p' is not closed before PLAN in line 5",
            "4:3: '{' of BODY is not closed before PLAN in line 5",
        ],
    ),
    BadText(
        "clauses that are not closed",
        "PLAN p\n{\n  BODY\n  {\n    op (a : b) {ALL\n  }\n}\n",
        ["5:16: '{' of the clauses of 'op' is never closed"],
    ),
    BadText(
        "a plan that ends in the middle",
        "PLAN p { INPUT: a BODY { op (a, ",
        [
            "1:8: '{' of PLAN 'p' is never closed",
            "1:24: '{' of BODY is never closed",
            "1:32: expected a variable or a constant after ',', found the end of the file",
        ],
    ),
]

HEADERS = [
    BadText("no BODY", "PLAN p\n{\n  INPUT: a\n}\n", ["1:6: PLAN 'p' has no BODY"]),
    BadText(
        "two bodies",
        "PLAN p\n{\n  BODY { op (a : b) }\n  BODY { op (b : c) }\n}\n",
        ["4:3: a plan has one BODY only; the first is in line 3"],
    ),
    BadText(
        "BODY misspelt",
        "PLAN p\n{\n  BDOY { op (a : b) }\n}\n",
        ["3:3: unknown part of a plan 'BDOY'; did you mean 'BODY'?"],
    ),
    BadText(
        "another word for BODY",
        "PLAN p { STEPS { op (a : b) } }\n",
        ["1:10: unknown part of a plan 'STEPS'; only BODY is followed by '{'"],
    ),
    BadText(
        "BODY left out", "PLAN p\n{\n  INPUT: a\n  { op (a : b) }\n}\n", ["4:3: expected BODY before '{'"]
    ),
    BadText(
        "BODY without its brace",
        "PLAN p\n{\n  BODY\n    op (a : b)\n  }\n}\n",
        ["3:7: expected '{' after 'BODY', found the end of the line"],
    ),
    BadText(
        "statements without BODY",
        "PLAN p\n{\n  INPUT: a\n  op (a : b)\n}\n",
        ["4:3: statement 'op' stands outside of BODY { … }"],
    ),
    BadText(
        "OUTPUT misspelt and without its colon",
        header("OUPUT a"),
        [
            "3:3: unknown part of a plan 'OUPUT'; did you mean 'OUTPUT'?",
            "3:9: expected ':' after 'OUPUT', found 'a'",
        ],
    ),
    BadText(
        "INPUT without its colon",
        header("INPUT a", "OUTPUT b"),
        ["3:9: expected ':' after 'INPUT', found 'a'", "4:10: expected ':' after 'OUTPUT', found 'b'"],
    ),
    BadText(
        "an entry that is given twice",
        header("INPUT: a", "OUTPUT: b", "input: c"),
        ["5:3: INPUT stands twice in PLAN 'p'; the first is in line 3"],
    ),
    BadText(
        "inputs without a comma", header("INPUT: a b"), ["3:12: expected '(' or ',' after 'a', found 'b'"]
    ),
    BadText(
        "a comma at the end of the outputs",
        header("OUTPUT: a,"),
        ["3:13: expected an output after ',', found the end of the line"],
    ),
    BadText(
        "a constant for an output",
        header("OUTPUT: a, true"),
        ["3:14: expected an output after ',', found the constant true"],
    ),
    BadText(
        "a string for an input", header('INPUT: "a"'), ["3:10: expected an input after ':', found \"a\""]
    ),
    BadText(
        "a type that does not exist",
        header("INPUT: a (city text, beds numbr)"),
        [
            "3:18: unknown type 'text' (there are: char, number, boolean, date, relation, document)",
            "3:29: unknown type 'numbr'; did you mean 'number'?",
        ],
    ),
    BadText(
        "an attribute declared twice",
        header("INPUT: a (city, beds number, city char)"),
        ["3:32: attribute 'city' stands here twice"],
    ),
    BadText(
        "attributes that are not closed",
        header("INPUT: a (city char", "OUTPUT: b"),
        ["3:22: expected ',' or ')' after 'char', found the end of the line"],
    ),
    BadText(
        "a type too many",
        header("INPUT: a (city char number)"),
        ["3:23: expected ',' or ')' after 'char', found 'number'"],
    ),
    BadText(
        "a parameter without its default",
        header("PARAM: a = , b"),
        ["3:14: expected a constant after '=', found ','"],
    ),
    BadText(
        "a variable for a default", header("PARAM: a = b"), ["3:14: expected a constant after '=', found 'b'"]
    ),
    BadText(
        "a depth of nought",
        header("MAX_DEPTH: 0"),
        ["3:14: MAX_DEPTH takes a whole number of at least 1, not 0"],
    ),
    BadText("no depth", header("MAX_DEPTH:"), ["3:3: MAX_DEPTH takes a whole number"]),
    BadText(
        "another word behind the depth",
        header("MAX_DEPTH: 5 halt"),
        ["3:16: only 'stop' may follow MAX_DEPTH's number, found 'halt'"],
    ),
    BadText(
        "ONCE without quotes",
        header("ONCE: url"),
        ["3:9: ONCE takes one string with attributes, such as \"url\", not 'url'"],
    ),
    BadText(
        "ONCE with two strings",
        header('ONCE: "url" "id"'),
        ['3:15: ONCE takes one string with attributes, such as "url"'],
    ),
    BadText("an option of the plan without a value", header("COMMIT:"), ["3:3: COMMIT takes a value"]),
    BadText(
        "words where an entry belongs",
        header("hello", "INPUT: a"),
        ["3:3: expected INPUT, OUTPUT, PARAM, MAX_DEPTH, ONCE or BODY, found 'hello'"],
    ),
    BadText(
        "a mark where an entry belongs",
        header(": a"),
        ["3:3: expected INPUT, OUTPUT, PARAM, MAX_DEPTH, ONCE or BODY, found ':'"],
    ),
]

STATEMENTS = [
    BadText(
        "a colon missing between two outputs",
        body("op (a, b c)"),
        ["5:14: expected ',', ':' or ')' after 'b', found 'c'"],
    ),
    BadText(
        "two commas", body("op (a,, b : c)"), ["5:11: expected a variable or a constant after ',', found ','"]
    ),
    BadText(
        "a comma before the colon",
        body("op (a, : c)"),
        ["5:12: expected a variable or a constant after ',', found ':'"],
    ),
    BadText("two colons", body("op (a : b : c)"), ["5:15: expected ',' or ')' after 'b', found ':'"]),
    BadText(
        "a constant among the outputs",
        body('op (a : "b", c)'),
        ["5:13: expected an output or ')' after ':', found \"b\""],
    ),
    BadText(
        "null among the outputs",
        body("op (a : null)"),
        ["5:13: expected an output or ')' after ':', found the constant null"],
    ),
    BadText(
        "a statement without parentheses",
        body("op a : b", "op (b : c)"),
        ["5:8: expected '(' after 'op', found 'a'"],
    ),
    BadText(
        "a statement that is not closed",
        body("op (a : b", "op (b : c)"),
        ["5:14: expected ',' or ')' after 'b', found the end of the line"],
    ),
    BadText(
        "a statement that is not closed before its clauses",
        body("op (a : b {ALL}"),
        ["5:15: expected ',' or ')' after 'b', found '{'"],
    ),
    BadText(
        "a statement in a statement",
        body('select (project (a, "x"), "y" : b)'),
        [
            "5:13: 'project' cannot stand inside 'select'; "
            "make it a statement of its own and use its output here"
        ],
    ),
    BadText("a word alone", body("op"), ["5:7: expected '(' after 'op', found the end of the line"]),
    BadText("a string for a statement", body('"op" (a : b)'), ['5:5: expected a statement, found "op"']),
    BadText(
        "clauses without a statement", body("{ALL}", "op (a : b)"), ["5:5: expected a statement, found '{'"]
    ),
    BadText(
        "an equals sign without a value",
        body("op (a, to= : b)"),
        ["5:16: expected a constant after '=', found ':'"],
    ),
    BadText(
        "a variable for a named constant",
        body("op (a, to=b : c)"),
        ["5:15: expected a constant after '=', found 'b'"],
    ),
    BadText(
        "a named constant without its equals sign",
        body('op (a, to "b" : c)'),
        ["5:15: expected ',', ':', '=' or ')' after 'to', found \"b\""],
    ),
    BadText(
        "a list in a list", body("op (a, [1, [2]] : b)"), ["5:16: expected a constant after ',', found '['"]
    ),
    BadText(
        "a parameter in a list",
        body("op (a, [1, $x] : b)"),
        ["5:16: expected a constant after ',', found '$x'"],
    ),
    BadText(
        "a list that is not closed",
        body("op (a, [1, 2 : b)"),
        ["5:18: expected ',' or ']' after 2, found ':'"],
    ),
    BadText(
        "thousands of brackets",
        body("op (" + "[" * 5000 + " : b)"),
        ["5:10: expected a constant or ']' after '[', found '['"],
    ),
    BadText(
        "a clause without a value",
        body("op (a : b) {BY: ; ALL}"),
        ["5:21: expected a value after ':', found ';'"],
    ),
    BadText(
        "clauses on one line without a semicolon",
        body("op (a : b) {ALL ORDERED}"),
        ["5:21: expected ':', ';' or a new line after 'ALL', found 'ORDERED'"],
    ),
    BadText(
        "values without a comma",
        body("op (a : b) {WAIT: c d}"),
        ["5:25: expected ',', ';' or a new line after 'c', found 'd'"],
    ),
    BadText(
        "a clause without its colon",
        body('op (a : b) {BY "city"}'),
        ["5:20: expected a clause, ':', ';' or '}' after 'BY', found \"city\""],
    ),
    BadText("WAIT alone", body("op (a : b) {WAIT}"), ["5:17: expected ':' and a name after 'WAIT'"]),
    BadText(
        "WAIT for a text", body('op (a : b) {WAIT: "c"}'), ['5:23: WAIT takes variables or signals, not "c"']
    ),
    BadText("DONE twice", body("op (a : b) {DONE: c; ALL; done: d}"), ["5:31: DONE stands here twice"]),
    BadText(
        "ERRORS with two variables",
        body("op (a : b) {ERRORS: c, d}"),
        ["5:28: ERRORS takes one variable only"],
    ),
    BadText(
        "ERRORS with a text",
        body('op (a : b) {ERRORS: "skip"}'),
        ['5:25: ERRORS takes a variable or the word skip, not "skip"'],
    ),
    BadText(
        "braces in clauses",
        body("op (a : b) {ALL {ORDERED}}"),
        ["5:21: expected a clause, ':', ';' or '}' after 'ALL', found '{'"],
    ),
    BadText(
        "a parenthesis in clauses",
        body("op (a : b) {BY (city)}"),
        ["5:20: expected a clause, ':', ';' or '}' after 'BY', found '('"],
    ),
    BadText(
        "mistakes everywhere",
        "USE x\n"
        + header("INPT: a")
        + body("op (a b : c)", r'op (a, "\q" : c) {WAIT: 5}')
        + "PLAN q { BODY { op (: ) ) } }\n",
        [
            "1:5: expected a file in quotes after 'USE', found 'x'",
            "4:3: unknown part of a plan 'INPT'; did you mean 'INPUT'?",
            "11:11: expected ',', ':' or ')' after 'a', found 'b'",
            "12:13: unknown escape '\\q'; a backslash is written '\\\\'",
            "12:29: WAIT takes variables or signals, not 5",
            "15:25: expected a statement, found ')'",
        ],
    ),
]

LIMITS = [
    BadText(
        "a file that is too large",
        b"#" * 5_000_001,
        ["1:1: the file has 5,000,001 bytes; at most 5,000,000 are allowed"],
    ),
    BadText(
        "a text that is too large",
        "é" * 5_000_001,
        ["1:1: the file has 5,000,001 characters; at most 5,000,000 are allowed"],
    ),
    BadText(
        "too many statements",
        body("o ()" * 100_001),
        ["5:400005: a plan has at most 100,000 statements"],
    ),
    BadText(
        "more mistakes than anybody reads",
        body(*["op (a b)"] * 250),
        [
            *(f"{line}:11: expected ',', ':' or ')' after 'a', found 'b'" for line in range(5, 205)),
            "204:11: 50 more mistakes follow",
        ],
    ),
    BadText(
        "many mistakes on a very long line",
        body(f"op ('{'x' * 600_000}', a b)" + "op (a b)" * 10),
        [
            "5:600015: expected ',', ':' or ')' after 'a', found 'b'",
            "5:600023: expected ',', ':' or ')' after 'a', found 'b'",
            "5:600023: 9 more mistakes follow",
        ],
    ),
    BadText(
        "a hundred thousand braces",
        "{" * 100_000,
        ["1:1: expected PLAN, USE or another item, found '{'"],
    ),
    BadText(
        "a hundred thousand parentheses",
        body("(" * 100_000),
        ["5:5: expected a statement, found '('"],
    ),
]

BAD_TEXTS = {
    "bytes": BYTES,
    "tokens": TOKENS,
    "items": ITEMS,
    "headers": HEADERS,
    "statements": STATEMENTS,
    "limits": LIMITS,
}
