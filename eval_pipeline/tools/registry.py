"""Every tool that a team or a benchmark can name, under its key.

A tool is a name and a description for the model, and a function that is bound to one run. What it does
belongs in modules of its own, which it names, so that its hash covers them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

from eval_pipeline.tools import corpus, source_tree
from eval_pipeline.tools.calc import calculate
from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.pages import read_page as read_ocr_page
from eval_pipeline.tools.python_exec import run_python
from eval_pipeline.tools.read_multi import read_multi
from eval_pipeline.tools.read_text import read_text
from eval_pipeline.tools.sql import tools as sql_tools

BoundTool = Callable[..., Awaitable[str]]
"""An async function with named, typed parameters; whatever it raises is the tool's error."""


@dataclass(frozen=True)
class ToolSpec:
    """One tool: ``name`` and ``description`` are what the model sees, ``key`` is what a team file says.

    ``bind`` makes the function of one run. ``sources`` are the files that decide what it answers, relative to
    the package ``eval_pipeline``; ``folder/`` stands for every module below it.
    """

    key: str
    name: str
    description: str
    bind: Callable[[ToolContext], BoundTool]
    sources: tuple[str, ...]

    @cached_property
    def source_hash(self) -> str:
        """SHA-256, hex, over description and sources; the same for a checkout and a wheel, on every platform."""
        digest = hashlib.sha256(f"{self.key}\n{self.name}\n{self.description}\n".encode())
        for name in sorted(_modules(self.sources)):
            digest.update(f"{name}\n".encode())
            digest.update(files("eval_pipeline").joinpath(name).read_bytes().replace(b"\r\n", b"\n"))
        return digest.hexdigest()


TOOLS: dict[str, ToolSpec] = {}
"""Every registered tool by its key."""


def register(
    key: str, *, name: str, description: str, sources: tuple[str, ...]
) -> Callable[[Callable[[ToolContext], BoundTool]], Callable[[ToolContext], BoundTool]]:
    """Register the decorated function, which binds the tool to a run.

    Raises:
        ValueError: another tool has this key.
    """

    def add(bind: Callable[[ToolContext], BoundTool]) -> Callable[[ToolContext], BoundTool]:
        if key in TOOLS:
            raise ValueError(f"two tools are registered as {key!r}")
        TOOLS[key] = ToolSpec(key, name, description, bind, sources)
        return bind

    return add


def _modules(sources: tuple[str, ...]) -> set[str]:
    root = files("eval_pipeline")
    names = set()
    for source in sources:
        if source.endswith("/"):
            entries = root.joinpath(source).iterdir()
            names |= {f"{source}{entry.name}" for entry in entries if entry.name.endswith(".py")}
        else:
            names.add(source)
    return names


@register(
    "read_attached_file.text",
    name="read_attached_file",
    description="Read the task's attached file as UTF-8 text. `path` is the path of the attached file.",
    sources=("tools/errors.py", "tools/read_text.py"),
)
def _read_text(context: ToolContext) -> BoundTool:
    async def read_attached_file(path: str) -> str:
        """The attachment as strict UTF-8 text, uncut."""
        return await asyncio.to_thread(read_text, path, context.attachment)

    return read_attached_file


@register(
    "read_attached_file.multi",
    name="read_attached_file",
    description=(
        "Read the task's attached file as text: text files, xlsx, xls, docx, pptx, pdf and zip listings; at most "
        "20,000 characters are returned. `path` is the absolute path of the attached file. Images and audio cannot be "
        "read. For calculations on the file's data, open the same path in python_exec."
    ),
    sources=("tools/errors.py", "tools/read_text.py", "tools/read_multi.py", "tools/readers/"),
)
def _read_multi(context: ToolContext) -> BoundTool:
    async def read_attached_file(path: str) -> str:
        """The attachment as text, by its extension."""
        return await read_multi(path, context.attachment, seconds=context.read_timeout_s)

    return read_attached_file


@register(
    "python_calc",
    name="python_calc",
    description=(
        "Calculate one arithmetic expression, such as (3 + 4) * 2.5. Numbers, + - * / // % **, parentheses, round, "
        "abs, min and max are allowed; anything else is an error."
    ),
    sources=("tools/calc.py",),
)
def _python_calc(context: ToolContext) -> BoundTool:
    async def python_calc(expression: str) -> str:
        """The value of the expression."""
        return calculate(expression)

    return python_calc


@register(
    "python_exec",
    name="python_exec",
    description=(
        "Run a Python program in an isolated process and return what it prints, at most 8,000 characters. `code` is "
        "the whole program: nothing is kept between calls, so import what you need and print the result. The standard "
        "library, pandas and openpyxl are available, and the attached file at its absolute path; there is no network. "
        "A program is stopped after 20 seconds."
    ),
    sources=("tools/errors.py", "tools/python_exec.py", "tools/sandbox/"),
)
def _python_exec(context: ToolContext) -> BoundTool:
    async def python_exec(code: str) -> str:
        """What the program printed."""
        return await run_python(
            code, context.attachment, seconds=context.exec_timeout_s, sandbox_minimum=context.sandbox_minimum
        )

    return python_exec


@register(
    "sql_schema",
    name="sql_schema",
    description="Return the tables and views of the task's database, with their columns and keys. Takes no argument.",
    sources=("tools/sql/",),
)
def _sql_schema(context: ToolContext) -> BoundTool:
    async def sql_schema() -> str:
        """The tables and views of the task's database."""
        database = sql_tools.database_of(context.attachment, context.dsn_env)
        return await asyncio.to_thread(sql_tools.describe, database)

    return sql_schema


@register(
    "sql_query",
    name="sql_query",
    description=(
        "Run one SQL query on the task's database and return its result: the columns and at most 50 rows. `query` is "
        "exactly one statement that reads; nothing can be changed. A query is stopped after 10 seconds."
    ),
    sources=("tools/sql/",),
)
def _sql_query(context: ToolContext) -> BoundTool:
    async def sql_query(query: str) -> str:
        """The first rows of the query's result."""
        database = sql_tools.database_of(context.attachment, context.dsn_env)
        return await asyncio.to_thread(sql_tools.query, query, database)

    return sql_query


@register(
    "search_documents",
    name="search_documents",
    description=(
        "Search the task's documents and return the best five, each as [doc:ID] title with its URL and the passage "
        "that fits best. `query` is some words of what you look for, in the language of the documents."
    ),
    sources=("tools/corpus.py",),
)
def _search_documents(context: ToolContext) -> BoundTool:
    async def search_documents(query: str) -> str:
        """The best documents for the query."""
        return await asyncio.to_thread(corpus.search, query, context.materials)

    return search_documents


@register(
    "fetch_document",
    name="fetch_document",
    description=(
        "Return the text of one document of the task. `doc_id` is the ID that search_documents shows. A long document "
        "comes in pages of 12,000 characters: `page` is 1 for the first."
    ),
    sources=("tools/corpus.py",),
)
def _fetch_document(context: ToolContext) -> BoundTool:
    async def fetch_document(doc_id: str, page: int = 1) -> str:
        """One page of a document."""
        return await asyncio.to_thread(corpus.fetch, doc_id, page, context.materials)

    return fetch_document


@register(
    "list_source",
    name="list_source",
    description="List the files of the task's source tree with their numbers of lines. Takes no argument.",
    sources=("tools/source_tree.py",),
)
def _list_source(context: ToolContext) -> BoundTool:
    async def list_source() -> str:
        """The files of the source tree."""
        return await asyncio.to_thread(source_tree.listing, context.materials)

    return list_source


@register(
    "read_source",
    name="read_source",
    description=(
        "Return lines of one file of the source tree, each behind its number. `path` is as list_source shows it; "
        "`first_line` and `last_line` count from 1, at most 400 lines are returned at once."
    ),
    sources=("tools/source_tree.py",),
)
def _read_source(context: ToolContext) -> BoundTool:
    async def read_source(path: str, first_line: int = 1, last_line: int | None = None) -> str:
        """Numbered lines of a file."""
        return await asyncio.to_thread(source_tree.read, path, first_line, last_line, context.materials)

    return read_source


@register(
    "search_source",
    name="search_source",
    description=(
        "Search every file of the source tree and return the lines that have `pattern`, as path:line: text, at most "
        "100. `pattern` is a literal text, or with `regex` true a regular expression of Python."
    ),
    sources=("tools/source_tree.py", "tools/source_grep.py"),
)
def _search_source(context: ToolContext) -> BoundTool:
    async def search_source(pattern: str, regex: bool = False) -> str:
        """The lines that have the pattern."""
        return await asyncio.to_thread(source_tree.search, pattern, regex, context.materials)

    return search_source


@register(
    "read_page",
    name="read_page",
    description=(
        "Return the text that an OCR program has read on one page of the task's document, mistakes included, at most "
        "20,000 characters. `page` is the number of the page, counted from 1."
    ),
    sources=("tools/pages.py",),
)
def _read_page(context: ToolContext) -> BoundTool:
    async def read_page(page: int) -> str:
        """The OCR text of the page."""
        return await asyncio.to_thread(read_ocr_page, page, context.materials)

    return read_page
