"""``.env`` files and the environment, as one mapping of names to texts.

Reading is strict where python-dotenv only logs: a line that it cannot parse would silently leave a setting
at its default. What the values mean belongs to :mod:`eval_pipeline.settings`. No message shows a line's text,
since it may hold a key.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from eval_pipeline.errors import SettingsError

PREFIX = "EVAL_"
MAX_BYTES = 256 * 1024


def read_env_file(path: Path) -> dict[str, str]:
    """Every variable with our prefix that ``path`` sets; empty where there is no such file.

    Variables of other programs in the same file are passed over. ``${NAME}`` is not expanded, since a key or
    password may hold one. The last line that sets a name counts.

    Raises:
        SettingsError: unreadable, too large, not UTF-8, or a line that is no ``NAME=value``.
    """
    try:
        if not path.exists():
            return {}
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as exc:
        raise SettingsError(f"{path}: cannot be read ({exc.strerror})") from None
    if len(data) > MAX_BYTES:
        raise SettingsError(f"{path}: is larger than {MAX_BYTES // 1024} KiB, which no .env file needs")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise SettingsError(f"{path}: line {line} is not UTF-8; save the file as UTF-8") from None
    return _bindings(text, path)


def _bindings(text: str, path: Path) -> dict[str, str]:
    values: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(text)):
        # what was read for one binding begins with the blank lines before it
        blank = len(binding.original.string) - len(binding.original.string.lstrip())
        line = binding.original.line + binding.original.string.count("\n", 0, blank)
        if binding.error:
            raise SettingsError(f"{path}: line {line} is not of the form NAME=value; correct or remove it")
        if binding.key is None or not binding.key.upper().startswith(PREFIX):
            continue
        if binding.value is None:
            raise SettingsError(f"{path}: line {line}: {binding.key} has no '='; write {binding.key}=value")
        values[binding.key] = binding.value
    return values


def merged(files: list[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """Our variables by upper-case name: later files over earlier ones, the environment over all."""
    values: dict[str, str] = {}
    for source in (*map(read_env_file, files), environment):
        values |= {name.upper(): value for name, value in source.items() if name.upper().startswith(PREFIX)}
    return values
