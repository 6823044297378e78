"""The language of WRAPPER items: reading and writing their texts."""

from aioflow.wrappers.language.parsing import parse_item, parse_wrapper
from aioflow.wrappers.language.printing import print_wrapper
from aioflow.wrappers.language.wrapper_text import WrapperText

__all__ = ["WrapperText", "parse_item", "parse_wrapper", "print_wrapper"]
