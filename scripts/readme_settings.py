"""Writes the table of settings into README.md, from the settings themselves. A test holds the two together."""

from __future__ import annotations

from pathlib import Path

from eval_pipeline.settings import Settings, default_text, env_name

BEGIN, END = "<!-- settings -->", "<!-- /settings -->"


def settings_table() -> str:
    """The settings as a Markdown table, in the order of their declaration."""
    lines = ["| variable | default | what it is |", "| --- | --- | --- |"]
    for field, info in Settings.model_fields.items():
        default = default_text(field)
        description = (info.description or "").replace("|", "\\|")
        lines.append(f"| `{env_name(field)}` | {f'`{default}`' if default else '–'} | {description} |")
    return "\n".join(lines)


def main() -> None:
    """Renew the part of README.md between the two marks."""
    path = Path(__file__).parents[1] / "README.md"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{settings_table()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
