"""Makes any text safe inside a page: in HTML, in an attribute, in a JSON data island. No layout."""

from __future__ import annotations

import json
import re

from markupsafe import Markup

from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.tracing.text import clean
from eval_pipeline.tracing.transcript import visible

# "<" alone would do against </script> and <!--; the others keep the island the same after any careless HTML unescaping
_ISLAND = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&'\u2028\u2029"}
_SURROGATE = re.compile("[\ud800-\udfff]")


def shown_text(text: str) -> str:
    """``text`` as a reader can see it: no control, no text running the other way, no lone surrogate."""
    return visible(clean(text)[0])


def finalize(value: object) -> object:
    """What a template prints of a value: texts that are not our own markup as :func:`shown_text` gives them."""
    if value is None:
        return "–"
    return shown_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def island(value: JsonValue) -> Markup:
    """``value`` as JSON for the inside of a ``<script type="application/json">``, which nothing in it can end."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ISLAND)
    return Markup(_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
