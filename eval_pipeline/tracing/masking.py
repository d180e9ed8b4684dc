"""Hides secrets before anything is stored or logged: the one place that knows what a secret looks like.

Three kinds are known: values whose key has a telling name, the secrets of this installation wherever they
occur, and keys of common shapes. A pass over ``n`` characters takes time proportional to ``n``, and a second
pass changes nothing.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from eval_pipeline.jsontypes import JsonValue

MASK = "***"
SHORTEST_SECRET = 6
"""A configured secret of fewer characters is not looked for: it would shred ordinary words."""

_WORDS = ("password", "token", "secret", "api_key", "authorization")
_ANY_WORD = "|".join(_WORDS)
SENSITIVE_KEY = re.compile(f"({_ANY_WORD})", re.IGNORECASE)

_DEEPEST = 200

# A key in quotes and its colon, as in JSON or a dict, the quotes escaped any number of times. Bare names are left
# alone: the arguments and variables of an answer that is a program must not change.
_NAMED = re.compile(
    rf"(?:{_ANY_WORD})[^\"'\\\r\n]{{0,64}}+(?P<quote>\\{{0,63}}+[\"'])\s{{0,16}}+:\s{{0,16}}+", re.IGNORECASE
)
_OPENING = re.compile(r"(\\{0,63}+)([\"'])")
_SCALAR = re.compile(r"(?:-?\d[\d.eE+-]*+|true|false|null|True|False|None)(?=[\s,}\])\\\"']|\Z)")
_STRUCTURE = re.compile(r"[\[\]{}]|\\{0,63}+\"")

_VALUE = r"[^\s\"'&;,<>#\\]+"
_HEADER_VALUE = r"[^\s\"',\\]+"
_Shape = tuple[str, re.Pattern[str], str]
"""What a lower-cased text must contain for the pattern to be worth a try; the pattern; its replacement."""

_ASSIGNMENTS: tuple[_Shape, ...] = (
    (
        "=",
        re.compile(rf"([?&;][\w.-]{{0,64}}?(?:{_ANY_WORD})[\w.-]{{0,64}}=){_VALUE}", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    ("=", re.compile(rf"((?:{_ANY_WORD.upper()})=[\"']?){_VALUE}"), rf"\1{MASK}"),
    # in a libpq connection string, but not among the arguments of a call
    (
        "password=",
        re.compile(rf"((?:\A|[\r\n]|[^\s,(]\s{{1,4}})password='?){_VALUE}", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    (
        "authorization",
        re.compile(
            r"(authorization\s{0,8}[:=]\s{0,8}(?:bearer|basic|token|digest|negotiate|apikey)\s{1,8})" + _HEADER_VALUE,
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
)
_SHAPES: tuple[_Shape, ...] = (
    ("api-key", re.compile(rf"(api-key\s{{0,8}}:\s{{0,8}}){_HEADER_VALUE}", re.IGNORECASE), rf"\1{MASK}"),
    (
        "bearer",
        re.compile(r"\b(bearer\s{1,8})(?=[\w.~+/=-]{0,64}[0-9])[\w.~+/=-]{8,}", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    # prose has words such as sk-learn-based-model: a key has a digit or a capital soon
    ("sk-", re.compile(r"(?<![A-Za-z0-9])sk-(?=[\w-]{0,64}[0-9A-Z])[A-Za-z0-9_-]{16,}"), MASK),
    ("gh", re.compile(r"gh[pousr]_[A-Za-z0-9]{16,}"), MASK),
    ("github_pat_", re.compile(r"github_pat_[A-Za-z0-9_]{20,}"), MASK),
    ("glpat-", re.compile(r"glpat-[A-Za-z0-9_-]{16,}"), MASK),
    ("hf_", re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{20,}"), MASK),
    ("xox", re.compile(r"xox[abeoprs]-[A-Za-z0-9-]{10,}"), MASK),
    ("akia", re.compile(r"(?<![A-Za-z0-9])AKIA[0-9A-Z]{16}(?![A-Za-z0-9])"), MASK),
    ("asia", re.compile(r"(?<![A-Za-z0-9])ASIA[0-9A-Z]{16}(?![A-Za-z0-9])"), MASK),
    ("aiza", re.compile(r"AIza[0-9A-Za-z_-]{30,}"), MASK),
    ("eyj", re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]{8,}+"), MASK),
    (
        "private key-----",
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
            r".*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
            re.DOTALL,
        ),
        MASK,
    ),
    ("://", re.compile(r"(://[^\s/:@\"'<>]{0,200}:)[^\s/\"'<>]{1,256}@"), rf"\1{MASK}@"),
)


class Masker:
    """Masks texts and JSON values. ``secrets`` are this installation's: the model's key, the password of the
    DSN.

    Made once and shared; it holds no state that changes.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        looked_for = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        forms = {form for secret in looked_for for form in _written_forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        # a secret such as "password" would take away the key's name before the value is found by it
        self._forms = [form for form in longest_first if not SENSITIVE_KEY.search(form)]
        self._forms_like_keys = [form for form in longest_first if SENSITIVE_KEY.search(form)]

    def text(self, text: str) -> str:
        """``text`` with every secret that can be recognised replaced by ``***``."""
        text = _without(text, self._forms)
        lowered = text.lower()
        text = _without_shapes(text, lowered, _SHAPES)
        if any(word in lowered for word in _WORDS):
            text = _mask_named(_without_shapes(text, lowered, _ASSIGNMENTS))
        return _without(text, self._forms_like_keys)

    def value(self, value: JsonValue) -> JsonValue:
        """``value`` with every string masked, and with ``***`` for the value of every key of a telling name.

        Works down to 200 levels of nesting; what lies deeper is masked unseen.
        """
        return self._value(value, _DEEPEST)

    def _value(self, value: JsonValue, levels: int) -> JsonValue:
        match value:
            case str():
                return self.text(value)
            case dict() | list() if levels == 0:
                return MASK
            case dict():
                return {
                    self.text(key): MASK if SENSITIVE_KEY.search(key) else self._value(member, levels - 1)
                    for key, member in value.items()
                }
            case list():
                return [self._value(item, levels - 1) for item in value]
            case _:
                return value


class MaskingFilter(logging.Filter):
    """Masks a log record's message and traceback.

    To be added to handlers: the filters of a logger do not see the records of the loggers below it.
    """

    def __init__(self, masker: Masker) -> None:
        super().__init__()
        self._masker = masker

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):  # arguments that do not fit: logging itself only complains
            message = str(record.msg)
        record.msg, record.args = self._masker.text(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._masker.text(record.exc_text)
        return True


def _written_forms(secret: str) -> set[str]:
    """``secret`` as it may be written: raw, in a URL, in JSON, in Python, in HTML, in base64."""
    raw = secret.encode("utf-8", "surrogatepass")
    percent = {quote(raw, safe=""), quote_plus(raw), quote(raw)}
    percent |= {re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), form) for form in percent}
    forms = {secret, *percent}
    forms |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    forms |= {html.escape(secret), html.escape(secret, quote=False)}
    forms |= {encode(raw).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)}
    return forms


def _without(text: str, forms: list[str]) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, MASK)
    return text


def _without_shapes(text: str, lowered: str, shapes: tuple[_Shape, ...]) -> str:
    for needle, pattern, replacement in shapes:
        if needle in lowered:
            text = pattern.sub(replacement, text)
    return text


def _mask_named(text: str) -> str:
    """Mask the values of keys with telling names in the JSON and the dicts of a text.

    Inside prose and programs only values in quotes are taken for secrets; a text that is JSON as a whole, as far as it
    goes, is treated as the value that it stands for.
    """
    is_json = text.lstrip()[:1] in ("{", "[", '"')
    pieces: list[str] = []
    done = position = 0
    while (key := _NAMED.search(text, position)) is not None:
        position = key.end()
        opening = _OPENING.match(text, position)
        if opening is not None:
            start = opening.end()
            position = _end_of_string(text, start, opening[1], opening[2])
            masked = MASK if position > start else ""
        elif is_json:
            start = position
            position = _end_of_value(text, start, key["quote"][:-1])
            masked = f"{key['quote']}{MASK}{key['quote']}" if position > start else ""
        else:
            continue
        pieces += (text[done:start], masked)
        done = position
    return "".join((*pieces, text[done:]))


def _end_of_value(text: str, start: int, escape: str) -> int:
    """Where the JSON value that begins at ``start`` and is no string ends; ``start`` where there is none."""
    scalar = _SCALAR.match(text, start)
    if scalar is not None:
        return scalar.end()
    return _end_of_structure(text, start, escape) if text[start : start + 1] in ("{", "[") else start


def _end_of_string(text: str, start: int, escape: str, quote_sign: str) -> int:
    """Where the string that begins at ``start`` ends: its closing quote, or the end of a text that was cut.

    Inside ``n`` layers of JSON a quote that closes has 2^n - 1 backslashes before it, plus any multiple of
    2^(n+1) that stand for backslashes of the string's own.
    """
    own = len(escape)
    position = start
    while (found := text.find(quote_sign, position)) >= 0:
        first = found
        while first > start and text[first - 1] == "\\":
            first -= 1
        if (found - first) % (2 * (own + 1)) == own:
            return found - own
        position = found + 1
    return len(text)


def _end_of_structure(text: str, start: int, escape: str) -> int:
    """Just after the bracket that closes the one at ``start``; the end of the text where none does."""
    depth = 0
    position = start
    while (found := _STRUCTURE.search(text, position)) is not None:
        position = found.end()
        sign = found.group()
        if sign.endswith('"'):
            if len(sign) - 1 == len(escape):
                position = _end_of_string(text, position, escape, '"') + len(escape) + 1
            continue
        depth += 1 if sign in "[{" else -1
        if depth == 0:
            return position
    return len(text)
