from __future__ import annotations

import base64
import html
import json
import logging
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.tracing.masking import Masker, MaskingFilter

CANARY = "cänary/+\"\\ '<&>7"
MASKER = Masker([CANARY, "hunter2", "short"])


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"password": "x"}, {"password": "***"}),
        ({"PassWord_2": "x"}, {"PassWord_2": "***"}),
        ({"x-API_KEY": ["a", "b"]}, {"x-API_KEY": "***"}),
        ({"Authorization": {"Bearer": "x"}}, {"Authorization": "***"}),
        ({"client_secret": None, "tokens": 540}, {"client_secret": "***", "tokens": "***"}),
        ([{"a": [{"token": "x", "b": 1}]}], [{"a": [{"token": "***", "b": 1}]}]),
        ({"path": "/a", "한글": "답", "n": 1.5, "t": True}, {"path": "/a", "한글": "답", "n": 1.5, "t": True}),
        ({"hunter2": 1}, {"***": 1}),
        ({"json": '{"password": "x"}'}, {"json": '{"password": "***"}'}),
        ("hunter2", "***"),
        ({"apikey": "kept: the key's name is not one of the five"}, None),
    ],
)
def test_values_are_masked_by_the_names_of_their_keys(value: JsonValue, masked: JsonValue) -> None:
    assert MASKER.value(value) == (value if masked is None else masked)


def test_a_value_is_masked_at_any_depth() -> None:
    value: JsonValue = {"password": "canary"}
    for _ in range(3000):
        value = [value]
    masked = MASKER.value(value)
    for _ in range(200):
        assert isinstance(masked, list)
        [masked] = masked
    assert masked == "***"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('{"password": "x"}', '{"password": "***"}'),
        ('{"password":"x","user":"u"}', '{"password":"***","user":"u"}'),
        ('{"my_Token_1" : "x y z"}', '{"my_Token_1" : "***"}'),
        (r'{"secret": "a\"b\\"} "c"', '{"secret": "***"} "c"'),
        ('{"secret": ""}', '{"secret": ""}'),
        ("{'api_key': 'x'}", "{'api_key': '***'}"),
        ('{"password": 1234}', '{"password": "***"}'),
        ('{"password": -1.5e3}', '{"password": "***"}'),
        ('{"password": null, "a": 1}', '{"password": "***", "a": 1}'),
        ('{"token": {"a": "}", "b": [1]}, "c": 2}', '{"token": "***", "c": 2}'),
        ('{"token": ["a", "]"], "c": 2}', '{"token": "***", "c": 2}'),
        ('{"token": {"a": "cut off', '{"token": "***"'),
        ('{"token": "cut off', '{"token": "***'),
        ('{"token":\n  "x"}', '{"token":\n  "***"}'),
        (json.dumps(json.dumps({"password": 'x"y', "b": 1})), json.dumps(json.dumps({"password": "***", "b": 1}))),
        (
            json.dumps(json.dumps(json.dumps({"secret": 'x"\\', "b": 1}))),
            json.dumps(json.dumps(json.dumps({"secret": "***", "b": 1}))),
        ),
        (json.dumps(json.dumps({"token": {"a": "x"}})), json.dumps(json.dumps({"token": "***"}))),
        ('the file says {"password": "x"}, does it?', 'the file says {"password": "***"}, does it?'),
        ("password=x&user=u", "password=***&user=u"),
        ("host=h password=x dbname=d", "host=h password=*** dbname=d"),
        ("host=h password='x' dbname=d", "host=h password='***' dbname=d"),
        ("PGPASSWORD=x psql", "PGPASSWORD=*** psql"),
        ("https://h/p?a=1&access_token=x&b=2", "https://h/p?a=1&access_token=***&b=2"),
        ("OPENAI_API_KEY=x run", "OPENAI_API_KEY=*** run"),
        ('export HF_TOKEN="x"', 'export HF_TOKEN="***"'),
        ("Authorization: Bearer x", "Authorization: Bearer ***"),
        ("authorization: basic dTpw", "authorization: basic ***"),
        ("X-Api-Key: x", "X-Api-Key: ***"),
    ],
)
def test_values_are_masked_by_their_names_inside_texts(text: str, masked: str) -> None:
    assert Masker().text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "tokens: 540",
        "The token count is 540, max_tokens=100.",
        "for token in tokens: print(token)",
        'if kind == "token": return tree',
        "token = tokenizer.next()",
        'TOKENS = {"NUMBER": 1}',
        "the secret: 'tis\nnot one",
        'connect(password="x", user="u")',
        "connect(\n    user,\n    password=given,\n)",
        "def login(user, password=None): ...",
        "secret = 'x'",
        'counts = {"token": 0, "tokens": []}',
        'def f(secret: str, password: "Password") -> None: ...',
        "What is the password?",
        '{"user": "u", "path": "/a"}',
        "한글 문장입니다.",
        "sk-learn-based-classification",
        "the task-oriented-classification-V2-of-2024",
        "Bearer of bad news, bearer instruments",
        "https://host:8080/path@x and a@b.c",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert MASKER.text(text) == text


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "sk-ant-api03-AbCdEf_0123456789-x",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0abcdefghijkl_mnop",
        "glpat-abcdefghij0123456789",
        "hf_abcdefghijklmnopqrstuvwx",
        "xoxb-1234567890-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.SflKxwRJSMeKKF2QT4",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----",
    ],
)
def test_keys_of_common_shapes_are_masked_wherever_they_stand(secret: str) -> None:
    for around in ("{}", "key: {}.", '"{}"', "({})", "한글 {} 글", "line\n{}\nline"):
        assert Masker().text(around.format(secret)) == around.format("***")


def test_a_private_key_that_was_cut_is_masked_to_the_end() -> None:
    assert Masker().text("a -----BEGIN EC PRIVATE KEY-----\nMIIE") == "a ***"


def test_the_rest_of_a_bearer_line_and_of_a_url_stays() -> None:
    assert Masker().text("curl -H 'X: Bearer abc123def456' h") == "curl -H 'X: Bearer ***' h"
    assert Masker().text("to postgresql://me:p%40ss@h:5432/db") == "to postgresql://me:***@h:5432/db"
    assert Masker().text("redis://:pa:ss@h") == "redis://:***@h"


@pytest.mark.parametrize(
    "written",
    [
        CANARY,
        quote(CANARY, safe=""),
        quote(CANARY, safe="").lower(),
        quote(CANARY),
        quote_plus(CANARY),
        json.dumps(CANARY),
        json.dumps(CANARY, ensure_ascii=False),
        repr(CANARY),
        html.escape(CANARY),
        base64.b64encode(CANARY.encode()).decode(),
        base64.urlsafe_b64encode(CANARY.encode()).decode(),
    ],
)
def test_a_configured_secret_is_found_however_it_is_written(written: str) -> None:
    masked = MASKER.text(f"before {written} after")
    assert masked.replace("'", "").replace('"', "").replace("=", "") == "before *** after"


def test_a_short_secret_is_not_looked_for() -> None:
    assert MASKER.text("a short text") == "a short text"
    assert Masker(["", "12345"]).text("12345") == "12345"
    assert Masker(["123456"]).text("123456") == "***"


def test_a_secret_that_reads_like_a_key_does_not_hide_the_key() -> None:
    masker = Masker(["password"])
    assert masker.text('{"password": "x"}') == '{"***": "***"}'
    assert masker.value({"password": "x"}) == {"***": "***"}


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    assert Masker(["abcdef", "abcdefghi"]).text("abcdefghi abcdef") == "*** ***"


WORDS = ("password", "token", "api_key", "Authorization", "Bearer ", "sk-", "hunter2", "-----BEGIN PRIVATE KEY-----")
SIGNS = tuple("\"'\\:= \n{}[]x7@?&*")
TEXTS = st.lists(st.sampled_from([*WORDS, *SIGNS, "***", "://", "a" * 20]), max_size=30).map("".join)


@settings(deadline=None)
@given(TEXTS)
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = MASKER.text(text)
    assert MASKER.text(once) == once


@settings(deadline=None)
@given(st.recursive(TEXTS | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_a_configured_secret_never_survives(value: JsonValue) -> None:
    assert "hunter2" not in json.dumps(MASKER.value(value))


HIDDEN = "q1w2e3"
ODD_TEXT = st.sampled_from(
    ["", "x", 'a"b', "back\\slash", "\\", '\\"', "[{", "}]", "한글", "it's", "a\nb", ": ", '": "']
)
OPEN = st.recursive(
    ODD_TEXT | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXT, inner, max_size=3),
    max_leaves=5,
)
SECRET_VALUE = st.recursive(
    ODD_TEXT.map(lambda text: text + HIDDEN + text),
    lambda inner: st.lists(inner | OPEN, min_size=1, max_size=3) | st.dictionaries(ODD_TEXT, inner, min_size=1),
    max_leaves=3,
)
WITH_SECRETS = st.recursive(
    st.dictionaries(st.sampled_from(["password", "x-Token-1", "API_KEY", "a secret"]), SECRET_VALUE, min_size=1),
    lambda inner: st.lists(inner | OPEN, min_size=1, max_size=3) | st.dictionaries(ODD_TEXT, inner | OPEN, max_size=3),
    max_leaves=4,
)


@settings(deadline=None, max_examples=300)
@given(WITH_SECRETS, st.integers(1, 4))
def test_json_in_json_in_json_is_masked_and_stays_json(value: JsonValue, layers: int) -> None:
    text = value
    for _ in range(layers):
        text = json.dumps(text, ensure_ascii=False)
    assert isinstance(text, str)
    masked: JsonValue = MASKER.text(text)
    assert isinstance(masked, str)
    assert HIDDEN not in masked
    for _ in range(layers):
        assert isinstance(masked, str)
        masked = json.loads(masked)
    assert masked == MASKER.value(value)


@settings(deadline=None)
@given(WITH_SECRETS, st.integers(0, 200))
def test_json_that_was_cut_anywhere_is_masked_too(value: JsonValue, end: int) -> None:
    assert HIDDEN not in MASKER.text(json.dumps(value, ensure_ascii=False)[:end])


@pytest.mark.parametrize(
    "piece",
    [
        "password",
        'token": ',
        "token='",
        'password="\n',
        '"token": {',
        '"token": [\\\\\\"',
        "\\",
        '\\"',
        "sk-",
        "sk-a",
        "eyJ",
        "eyJaaaaaaaaaa.",
        "://a:",
        "://",
        "?token",
        "?a.token.b=",
        "Bearer ",
        "authorization: ",
        "-----BEGIN PRIVATE KEY-----",
        "xoxb-",
        "password '",
        "가나다라 token ",
        "lorem ipsum dolor sit amet\n",
    ],
)
def test_a_megabyte_of_anything_is_masked_in_linear_time(piece: str) -> None:
    start = time.monotonic()
    MASKER.text("password=" + piece * (2_000_000 // len(piece)))
    assert time.monotonic() - start < 15


def test_ten_megabytes_are_masked_while_a_run_waits() -> None:
    row = json.dumps({"name": "food", "amount": 17.25, "note": "음식", "max_tokens": 5}, ensure_ascii=False)
    start = time.monotonic()
    MASKER.text(row * (10_000_000 // len(row)))
    assert time.monotonic() - start < 20


def test_log_records_are_masked_with_their_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(MaskingFilter(MASKER))
    log = logging.getLogger("test.masking")
    try:
        raise RuntimeError("cannot log in with hunter2")
    except RuntimeError:
        log.exception("user %s has password=%s", "me", "abc")
    log.warning("%d arguments that do not fit hunter2", "x")
    assert "hunter2" not in caplog.text
    assert "user me has password=***" in caplog.text
    assert "RuntimeError: cannot log in with ***" in caplog.text
