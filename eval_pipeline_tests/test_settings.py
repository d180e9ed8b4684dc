"""The settings: what is read from where, and what a person is told about a wrong value."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import get_args

import pytest

from eval_pipeline.env_files import MAX_BYTES
from eval_pipeline.errors import SettingsError
from eval_pipeline.settings import Settings, default_text, env_name, load_settings, secrets
from eval_pipeline.tools.sandbox.policy import LEVELS

CHECKOUT = Path(__file__).parents[1]
SECRET = "sehr-geheim-314"

pytestmark = pytest.mark.usefixtures("clean_environment")


def error_of(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    context = caught.value.__context__
    assert context is None or SECRET not in str(context) + repr(vars(context))
    return message


def test_without_any_variable_every_setting_has_its_documented_default() -> None:
    settings = load_settings()
    assert (settings.pg_schema, settings.pg_dagster_schema, settings.pg_dsn) == ("eval_ph1", "dagster", None)
    assert (settings.llm_provider, settings.llm_temperature, settings.llm_seed) == ("scripted", 0.0, None)
    assert (settings.max_messages, settings.concurrency) == (30, 4)
    assert (settings.price_input, settings.price_output, settings.gaia_dir) == (None, None, None)


def test_variables_become_typed_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "EVAL_CONCURRENCY": "8",
        "EVAL_LLM_TEMPERATURE": "0.7",
        "EVAL_LLM_STREAM": "true",
        "EVAL_LLM_SEED": "-1",
        "EVAL_GAIA_DIR": "~/gaia",
        "EVAL_LOG_LEVEL": "info",
    }.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert (settings.concurrency, settings.llm_temperature, settings.llm_seed) == (8, 0.7, -1)
    assert settings.llm_stream is True
    assert settings.gaia_dir == Path.home() / "gaia"
    assert settings.log_level == "INFO"


def test_the_word_none_leaves_the_temperature_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_LLM_TEMPERATURE", "None")
    assert load_settings().llm_temperature is None


def test_an_empty_value_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("EVAL_CONCURRENCY=9\n")
    monkeypatch.setenv("EVAL_CONCURRENCY", "")
    monkeypatch.setenv("EVAL_LLM_API_KEY", "")
    settings = load_settings()
    assert (settings.concurrency, settings.llm_api_key) == (4, None)


def test_settings_are_read_afresh_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_CONCURRENCY", "5")
    assert load_settings().concurrency == 5
    monkeypatch.setenv("EVAL_CONCURRENCY", "6")
    assert load_settings().concurrency == 6


def test_settings_cannot_be_changed_afterwards() -> None:
    settings = load_settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.concurrency = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("EVAL_CONCURRENCY", "x", "'x' is not a whole number; set a whole number from 1 to 1000 (default: 4)"),
        ("EVAL_CONCURRENCY", "0", "'0' is less than 1; set a whole number from 1 to 1000 (default: 4)"),
        ("EVAL_CONCURRENCY", "1.5", "'1.5' is not a whole number"),
        ("EVAL_MAX_MESSAGES", "-3", "'-3' is less than 1"),
        ("EVAL_MAX_MESSAGES", "9" * 5000, "is too large a number"),
        ("EVAL_LLM_TEMPERATURE", "nan", "'nan' is not a finite number; set a number from 0 to 2 (default: 0.0)"),
        ("EVAL_LLM_TEMPERATURE", "2.1", "'2.1' is more than 2"),
        ("EVAL_RUN_TIMEOUT_S", "0", "'0' is not more than 0.0; set a number above 0 to 604800"),
        ("EVAL_RUN_TIMEOUT_S", "inf", "is not a finite number"),
        ("EVAL_LLM_STREAM", "maybe", "'maybe' is not true or false; set true or false (default: false)"),
        ("EVAL_LLM_PROVIDER", "azure", "'azure' is not one of 'scripted' or 'openai'"),
        ("EVAL_SANDBOX_MINIMUM", "none", "'none' is not one of"),
        ("EVAL_LOG_LEVEL", "loud", "set one of DEBUG, INFO, WARNING, ERROR, CRITICAL (default: WARNING)"),
        ("EVAL_LLM_MODEL", "two\nlines", "'two\\nlines' is no name"),
        ("EVAL_LLM_MODEL", "m" * 201, "is no name"),
        ("EVAL_GAIA_DIR", "/data\x1b[31m", "has control characters"),
        ("EVAL_GAIA_DIR", "~no-such-user-here/gaia", "begins with a ~ that names no user"),
        ("EVAL_PG_SCHEMA", "pg_mine", "'pg_mine' is no schema name"),
        ("EVAL_PG_SCHEMA", "Eval", "'Eval' is no schema name"),
        ("EVAL_PG_SCHEMA", 'x"; drop schema y', "is no schema name"),
        ("EVAL_PG_SCHEMA", "s" * 64, "is no schema name"),
        ("EVAL_PG_SCHEMA", "information_schema", "is no schema name"),
        ("EVAL_PRICE_INPUT", "-1", "'-1' is less than 0"),
        ("EVAL_CONCURRENCY", "\udcff", "'\\udcff' is not valid Unicode"),
        ("EVAL_LLM_MODEL", "\udcff", "'\\udcff' "),
        ("EVAL_GAIA_DIR", "/\udcff", "'/\\udcff' "),
        ("EVAL_LLM_API_KEY", "\udcff", "the value (not shown) "),
        ("EVAL_PG_DSN", "postgresql://h/\udcff", "the value (not shown) "),
        ("EVAL_LLM_SEED", str(2**63), "is more than 9223372036854775807"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    message = error_of(monkeypatch, **{name: value})
    assert message.startswith(f"{name}: ")
    assert told in message
    assert len(message) < 400


def test_several_wrong_values_are_one_line_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    message = error_of(monkeypatch, EVAL_CONCURRENCY="x", EVAL_MAX_MESSAGES="y", EVAL_LLM_STREAM="z")
    assert all(name in message for name in ("EVAL_CONCURRENCY: 'x'", "EVAL_MAX_MESSAGES: 'y'", "EVAL_LLM_STREAM: 'z'"))


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"EVAL_PG_SCHEMA": "dagster"}, "EVAL_PG_SCHEMA and EVAL_PG_DAGSTER_SCHEMA name the same schema"),
        ({"EVAL_PRICE_INPUT": "1"}, "EVAL_PRICE_INPUT and EVAL_PRICE_OUTPUT"),
        ({"EVAL_MAX_COST_PER_RUN": "1"}, "EVAL_MAX_COST_PER_RUN needs EVAL_PRICE_INPUT and EVAL_PRICE_OUTPUT"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], told: str
) -> None:
    assert told in error_of(monkeypatch, **variables)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("EVAL_CONCURENCY", "'EVAL_CONCURENCY' is no setting; did you mean EVAL_CONCURRENCY?"),
        ("EVAL_LLM_APIKEY", "did you mean EVAL_LLM_API_KEY?"),
        ("EVAL_XYZZY", "'EVAL_XYZZY' is no setting; remove it"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_closest_known_one(
    monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    assert told in error_of(monkeypatch, **{name: SECRET})


def test_an_unknown_variable_in_a_dotenv_file_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("EVAL_MAX_MESAGES=3\n")
    assert "did you mean EVAL_MAX_MESSAGES?" in error_of(monkeypatch)


def test_variables_for_tests_and_of_other_programs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_TEST_ANYTHING", "1")
    monkeypatch.setenv("EVALS_THREAD_TIMEOUT", "1")
    Path(".env").write_text("OTHER=1\nDAGSTER_PG_URL=x\nLONELY\n")
    assert load_settings() == Settings()


@pytest.mark.parametrize(
    "dsn",
    [
        f"mysql://user:{SECRET}@host/db",
        f"postgresql+psycopg2://user:{SECRET}@host/db",
        f"postgresql:user:{SECRET}@host/db",
        f"user={{u}} password={SECRET}",
        f"postgresql://user:{SECRET}@host:port/db",
        f"postgresql://user:{SECRET}@host:99999/db",
        f"postgresql://user:{SECRET}@[::1/db",
        f"postgresql://user:{SECRET}#x@host/db",
        f"postgresql://user:1/{SECRET}@host/db",
        f"postgresql://user:{SECRET}@x@host/db",
        f"postgresql://user:{SECRET}@host/db\n",
        f"postgresql://user:{SECRET}@host/d b",
    ],
)
def test_a_wrong_dsn_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    message = error_of(monkeypatch, EVAL_PG_DSN=dsn)
    assert message.startswith("EVAL_PG_DSN: the value (not shown) ")
    assert "set postgresql://user:password@host:5432/database" in message


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://user:pw@host:5432/db",
        "postgres://host/db?sslmode=require",
        "postgresql:///db?host=/run/postgresql",
        "postgresql://user:a%40b@[::1]:5432/db",
    ],
)
def test_a_dsn_that_libpq_takes_is_taken(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", dsn)
    settings = load_settings()
    assert settings.pg_dsn is not None
    assert settings.pg_dsn.get_secret_value() == dsn


@pytest.mark.parametrize("key", [f"{SECRET} x", f"{SECRET}\n", f"{SECRET}é", f"{SECRET}\x1b"])
def test_a_wrong_key_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    assert error_of(monkeypatch, EVAL_LLM_API_KEY=key).startswith("EVAL_LLM_API_KEY: the value (not shown) ")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000/v1",
        "ftp://host/v1",
        "http://",
        f"http://user:{SECRET}@host/v1",
        f"http://host/v1?key={SECRET}",
        "http://host:99999/v1",
        "http://ho st/v1",
    ],
)
def test_a_wrong_endpoint_address_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    message = error_of(monkeypatch, EVAL_LLM_BASE_URL=url)
    assert message.startswith("EVAL_LLM_BASE_URL: the value (not shown) ")
    assert "http://localhost:8000/v1" in message


def test_secrets_show_in_no_printed_form_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", f"postgresql://user:{SECRET}@host/db")
    monkeypatch.setenv("EVAL_LLM_API_KEY", SECRET)
    settings = load_settings()
    assert SECRET not in f"{settings}{settings!r}{settings.model_dump()}{settings.model_dump_json()}"


def test_the_secrets_to_mask_are_the_key_and_every_form_of_the_passwords(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", "postgresql://user:a%40b@host/db?sslpassword=c%20d&application_name=x")
    monkeypatch.setenv("EVAL_LLM_API_KEY", "sk-1")
    assert secrets(load_settings()) == ("sk-1", "a%40b", "a@b", "c%20d", "c d")


def test_without_key_and_password_there_is_nothing_to_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", "postgresql://host/db")
    assert secrets(load_settings()) == ()


def test_the_environment_wins_over_the_current_folder_and_that_over_the_home(
    clean_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (clean_environment / ".env").write_text("EVAL_CONCURRENCY=1\nEVAL_MAX_MESSAGES=11\nEVAL_LLM_SEED=111\n")
    (elsewhere / ".env").write_text("EVAL_CONCURRENCY=2\nEVAL_MAX_MESSAGES=22\n")
    monkeypatch.setenv("EVAL_CONCURRENCY", "3")
    settings = load_settings()
    assert (settings.concurrency, settings.max_messages, settings.llm_seed) == (3, 22, 111)


def test_a_dotenv_file_is_read_as_people_write_it() -> None:
    Path(".env").write_bytes(
        b"\xef\xbb\xbf# comment\r\n\r\nexport EVAL_LLM_MODEL='a model'  # why\r\nEVAL_CONCURRENCY = 7\r\n"
        b'EVAL_LLM_API_KEY="k${HOME}"\r\nEVAL_CONCURRENCY=8'
    )
    settings = load_settings()
    assert (settings.llm_model, settings.concurrency) == ("a model", 8)
    assert settings.llm_api_key is not None
    assert settings.llm_api_key.get_secret_value() == "k${HOME}"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (f"EVAL_CONCURRENCY=1\nEVAL_LLM_API_KEY=é{SECRET}".encode("latin-1"), "line 2 is not UTF-8"),
        (f"A=1\n\n\nEVAL_LLM_API_KEY='{SECRET}\n".encode(), "line 4 is not of the form NAME=value"),
        (f"={SECRET}\n".encode(), "line 1 is not of the form NAME=value"),
        (b"A=1\nEVAL_LLM_MODEL\n", "line 2: EVAL_LLM_MODEL has no '='"),
        (b"# " + b"x" * MAX_BYTES, "is larger than 256 KiB"),
        ("EVAL_CONCURRENCY=1\n".encode("utf-16"), "line 1 is not UTF-8"),
    ],
)
def test_a_dotenv_file_that_cannot_be_read_is_one_line_without_its_text(
    monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    Path(".env").write_bytes(content)
    message = error_of(monkeypatch)
    assert ".env" in message
    assert told in message


def test_a_folder_called_dotenv_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").mkdir()
    assert ".env: cannot be read" in error_of(monkeypatch)


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({}, "EVAL_LLM_BASE_URL and EVAL_LLM_MODEL"),
        ({"EVAL_LLM_MODEL": "m"}, "EVAL_LLM_BASE_URL"),
        ({"EVAL_LLM_BASE_URL": "http://h/v1"}, "EVAL_LLM_MODEL"),
    ],
)
def test_an_incomplete_endpoint_is_one_line_that_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], missing: str
) -> None:
    monkeypatch.setenv("EVAL_LLM_PROVIDER", "openai")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"'openai', which needs {missing}; set") as caught:
        load_settings().require_endpoint()
    assert "\n" not in str(caught.value)


def test_a_complete_endpoint_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_LLM_BASE_URL", "http://h/v1")
    monkeypatch.setenv("EVAL_LLM_MODEL", "m")
    assert load_settings().require_endpoint() == ("http://h/v1", "m")


def test_the_sandbox_levels_are_the_ones_that_the_sandbox_knows() -> None:
    assert get_args(Settings.model_fields["sandbox_minimum"].annotation) == LEVELS


class TestDotenvExample:
    text = (CHECKOUT / ".env.example").read_text(encoding="utf-8")
    entries = re.findall(r"((?:^# .*\n)+)#(EVAL_[A-Z_]+)=(.*)\n", text, re.MULTILINE)

    def test_it_lists_every_setting_once_in_order_with_its_default(self) -> None:
        listed = [(name, value) for _, name, value in self.entries]
        assert listed == [(env_name(field), default_text(field)) for field in Settings.model_fields]
        assert self.text.count("EVAL_") >= len(listed)

    def test_the_comment_of_each_is_the_description_of_the_setting(self) -> None:
        comments = [" ".join(comment.replace("# ", "").split()) for comment, _, _ in self.entries]
        assert comments == [info.description for info in Settings.model_fields.values()]

    def test_with_every_line_taken_in_it_changes_nothing(self) -> None:
        Path(".env").write_text(re.sub(r"^#(EVAL_)", r"\1", self.text, flags=re.MULTILINE), encoding="utf-8")
        assert load_settings() == Settings()
