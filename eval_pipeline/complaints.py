"""What pydantic found wrong with a value, in the words of a one-line message.

Settings and suites share these words. Which variable, file or field it was, and what to do, is added by
whoever validated.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import ErrorDetails

_WORDS = {
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is too large a number",
    "int_type": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
    "float_type": "is not a number",
    "finite_number": "is not a finite number",
    "bool_parsing": "is not true or false",
    "bool_type": "is not true or false",
    "string_type": "is not a text; write it in quotes",
    "string_unicode": "is not valid Unicode",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "dict_type": "is not a mapping of names to values",
    "model_type": "is not a mapping of names to values",
    "path_type": "is not a path",
    "literal_error": "is not one of {expected}",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "greater_than": "is not more than {gt}",
    "too_short": "is empty",
    "too_long": "has more than {max_length} elements",
    "string_too_short": "is empty",
    "string_too_long": "has more than {max_length} characters",
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "value_error": "{error}",
}


def complaint(details: ErrorDetails) -> str:
    """Why the value was refused, such as ``is not a whole number``; never holds the value itself.

    A validator of our own words its ``ValueError`` so that it continues the sentence "'value' …".
    """
    context: Mapping[str, object] = details.get("ctx", {})
    words = _WORDS.get(details["type"])
    return words.format_map(context) if words else f"cannot be used ({details['msg']})"
