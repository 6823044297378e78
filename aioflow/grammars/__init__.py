"""Grammars for irregular sources: what the interesting parts look like; everything else is skipped.

The language and the strategy are those of Jedi. Names are loaded when they are first used. The package
needs no engine.
"""

from typing import TYPE_CHECKING

from aioflow.exports import lazy_exports

if TYPE_CHECKING:
    from aioflow.grammars.alternatives import Interpretation, Parting, interpretations, parting
    from aioflow.grammars.checking import RuleVariable
    from aioflow.grammars.debug_page import debug_page
    from aioflow.grammars.errors import GrammarError, ParseError, ParseLimitError, ScriptError
    from aioflow.grammars.grammar import Grammar, ParsedSource, ParseStream, compile, compile_part
    from aioflow.grammars.items import GrammarName, GrammarText, find_grammar
    from aioflow.grammars.learning import LearnedGrammar, learn
    from aioflow.grammars.limits import ParseLimits
    from aioflow.grammars.records import GrammarRecords, ValueCarrier, ValueShape
    from aioflow.grammars.replay import BoundSpan, RuleMatch, SettledRecord
    from aioflow.grammars.script.values import XmlElement
    from aioflow.grammars.tokens import end_of_rules

__all__ = [
    "BoundSpan",
    "Grammar",
    "GrammarError",
    "GrammarName",
    "GrammarRecords",
    "GrammarText",
    "Interpretation",
    "LearnedGrammar",
    "ParseError",
    "ParseLimitError",
    "ParseLimits",
    "ParseStream",
    "ParsedSource",
    "Parting",
    "RuleMatch",
    "RuleVariable",
    "ScriptError",
    "SettledRecord",
    "ValueCarrier",
    "ValueShape",
    "XmlElement",
    "compile",
    "compile_part",
    "debug_page",
    "end_of_rules",
    "find_grammar",
    "interpretations",
    "learn",
    "parting",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "alternatives": ("Interpretation", "Parting", "interpretations", "parting"),
        "checking": ("RuleVariable",),
        "debug_page": ("debug_page",),
        "errors": ("GrammarError", "ParseError", "ParseLimitError", "ScriptError"),
        "grammar": ("Grammar", "ParsedSource", "ParseStream", "compile", "compile_part"),
        "items": ("GrammarName", "GrammarText", "find_grammar"),
        "learning": ("LearnedGrammar", "learn"),
        "limits": ("ParseLimits",),
        "records": ("GrammarRecords", "ValueCarrier", "ValueShape"),
        "replay": ("BoundSpan", "RuleMatch", "SettledRecord"),
        "script.values": ("XmlElement",),
        "tokens": ("end_of_rules",),
    },
)
