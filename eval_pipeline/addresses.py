"""Addresses that may hold secrets: what is wrong with one, said without showing it, and what to mask in it.

Turning a DSN into a connection belongs to :mod:`eval_pipeline.db`.
"""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit

_DSN_EXAMPLE = "set postgresql://user:password@host:5432/database"
_ENCODE = "write # / ? @ and % inside the user name or password as %23 %2F %3F %40 %25"
_PASSWORD_KEYS = ("password", "sslpassword")


def check_dsn(dsn: str) -> str:
    """Return ``dsn`` if it reads as the address of a PostgreSQL database.

    Raises:
        ValueError: it does not; the message continues "the value (not shown) …" and shows nothing of it.
    """
    if not _is_plain(dsn):
        raise ValueError(f"has white space or control characters; {_DSN_EXAMPLE}")
    if _scheme(dsn) not in ("postgresql", "postgres"):
        raise ValueError(f"does not begin with postgresql:// or postgres://; {_DSN_EXAMPLE}")
    parts = _split(dsn)
    if parts is None or parts.fragment or parts.netloc.count("@") > 1 or "/" in parts.path[1:]:
        raise ValueError(f"has a host, port or database name that cannot be read; {_DSN_EXAMPLE}, and {_ENCODE}")
    return dsn


def check_base_url(url: str) -> str:
    """Return ``url`` if it can be the base of an OpenAI-compatible endpoint.

    Raises:
        ValueError: it cannot; the message continues "the value (not shown) …" and shows nothing of it.
    """
    example = "set one such as http://localhost:8000/v1"
    if not _is_plain(url):
        raise ValueError(f"has white space or control characters; {example}")
    parts = _split(url)
    if _scheme(url) not in ("http", "https") or parts is None or not parts.hostname:
        raise ValueError(f"is not an http:// or https:// address with a host; {example}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        # the endpoint's address is recorded with every batch, so it must be free of secrets
        raise ValueError(f"has a user, a query or a fragment; put the key into EVAL_LLM_API_KEY and {example}")
    return url


def dsn_passwords(dsn: str) -> tuple[str, ...]:
    """Every password in ``dsn``, as it is written there and decoded; empty for none."""
    parts = urlsplit(dsn)
    pairs = [pair.partition("=") for pair in parts.query.split("&")]
    written = [parts.password or "", *(value for name, _, value in pairs if name in _PASSWORD_KEYS)]
    return tuple({form: None for value in written if value for form in (value, unquote(value))})


def _scheme(address: str) -> str:
    # urlsplit also accepts a scheme without the slashes
    scheme, found, _ = address.partition("://")
    return scheme.lower() if found else ""


def _is_plain(address: str) -> bool:
    return address.isprintable() and not any(character.isspace() for character in address)


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        # reading the port checks it
        return parts if parts.port is None or parts.port > 0 else None
    except ValueError:
        return None
