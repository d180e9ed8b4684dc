"""What an extension says about a file; imports no parser, so that the process of the runs need not load one."""

from __future__ import annotations

from pathlib import Path

IMAGES = frozenset(["png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "heif", "ico", "avif"])
AUDIO = frozenset(["mp3", "wav", "m4a", "aac", "flac", "ogg", "opus", "wma", "aiff", "aif", "mid", "midi"])
TEXTS = frozenset(
    {
        "csv",
        "tsv",
        "txt",
        "md",
        "json",
        "jsonl",
        "jsonld",
        "xml",
        "html",
        "htm",
        "yaml",
        "yml",
        "log",
        "py",
        "sql",
        "pdb",
    }
)
"""Shown as text whatever their bytes; another extension is tried as text too, but not if the content is binary."""


def extension(path: Path) -> str:
    """The extension in lower case without its point; ``""`` for none."""
    return path.suffix[1:].lower()


def notice(path: Path) -> str | None:
    """What is said about a picture or a recording, which no tool here can take in; ``None`` for another file."""
    kind = "an image" if extension(path) in IMAGES else "an audio file" if extension(path) in AUDIO else None
    if kind is None:
        return None
    return f"{path.name} is {kind} ({path.stat().st_size} bytes); its content cannot be read here."
