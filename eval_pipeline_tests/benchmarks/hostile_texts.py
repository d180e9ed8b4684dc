"""Texts that a model could write and that a scorer has to survive, for the tests of free-text benchmarks."""

from __future__ import annotations

import unicodedata

HOSTILE: dict[str, str] = {
    "empty": "",
    "white space": " \n\t\u00a0\u3000 ",
    "NUL": "\0" * 50 + "The tower [1].",
    "lone surrogates": "\ud800 tower \udfff [1].",
    "right to left": "\u202eThe tower\u202c שלום עליכם [1].",
    "zero width": "T\u200bh\u200de tower \ufeff[\u200b1\u200b].",
    "NFD Hangul": unicodedata.normalize("NFD", "한강의 다리는 1889년에 열렸다 [1]."),
    "10 MB": "The tower opened in 1889 [1]. " * 350_000,
    "10 MB without a space": "x" * 10_000_000,
    "one long sentence": "tower " * 33_000 + "[1].",
    "many brackets": "[" * 100_000 + "]" * 100_000,
    "many citations": "The tower opened [1-100]. " * 7_000,
    "many short claims": "a [1]. " * 28_000,
    "many backticks": "`a` " * 50_000,
    "uneven backticks": "`" * 199_999,
    "deep JSON": "[" * 90_000 + "]" * 90_000,
    "wide JSON": '{"a": [' + "1," * 90_000 + "1]}",
    "many numbers": "1,234.5 " * 25_000,
    "one number": "9" * 199_000,
    "many dots": "." * 199_999 + "x",
    "many quotes": '"a' * 99_000,
    "many headings": "# a\n" * 49_000,
    "many bars": "|" * 199_000,
    "many rows": "| a | b |\n" * 19_000,
    "many fences": "```\n" * 49_000,
    "many paths": "a/b.cpp:1 " * 19_000,
    "one long path": "a/" * 99_000 + ".cpp:1",
    "many URLs": "https://a.example/b(c) " * 8_000,
    "one long URL": "https://a.example/" + ")" * 199_000,
    "many Korean numbers": "3만 2천 " * 33_000,
    "expands under NFKC": "\ufdfa" * 199_000,
    "combining marks": "a" + "\u0301" * 199_000,
    "circled": "① " * 99_000,
    "emphasis": "*_" * 99_000,
    "our own mark": "\ue000" * 199_000,
}
"""By what each one is. None is taken for a right answer by any task of the tests."""
