"""The benchmarks there are: the shipped ones by name, a user's own by the place of its class.

How each one loads and scores belongs in its own module.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from eval_pipeline.benchmarks.analysis import Analysis
from eval_pipeline.benchmarks.base import Benchmark
from eval_pipeline.benchmarks.codetest import Codetest
from eval_pipeline.benchmarks.coding import Coding
from eval_pipeline.benchmarks.cppx import Cppx
from eval_pipeline.benchmarks.extract import Extract
from eval_pipeline.benchmarks.gaia import Gaia
from eval_pipeline.benchmarks.meeting import MeetingMinutes
from eval_pipeline.benchmarks.ocrproxy import OcrProxy
from eval_pipeline.benchmarks.research import Research
from eval_pipeline.benchmarks.sql import Sql
from eval_pipeline.errors import SuiteError
from eval_pipeline.ids import shown

BENCHMARKS: dict[str, Benchmark] = {
    entry.name: entry
    for entry in (
        Gaia(),
        Sql(),
        Research(),
        Analysis(),
        Cppx(),
        Extract(),
        MeetingMinutes(),
        OcrProxy(),
        Coding(),
        Codetest(),
    )
}


def benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``; ``package.module:Class`` is one of the user's own, made once per process.

    Raises:
        SuiteError: there is none of that name, or the class cannot be imported or is no benchmark.
    """
    if ":" in name:
        return _own(name)
    if name not in BENCHMARKS:
        raise SuiteError(f"there is no benchmark {shown(name)}; known are {', '.join(sorted(BENCHMARKS))}")
    return BENCHMARKS[name]


@cache
def _own(place: str) -> Benchmark:
    module_name, _, class_name = place.partition(":")
    try:
        found = getattr(import_module(module_name), class_name)()
    except Exception as error:  # whatever a module of the user's does when it is imported is the user's to mend
        reason = str(error).split("\n", 1)[0]
        raise SuiteError(
            f"benchmark {shown(place)} cannot be used ({type(error).__name__}: {reason}); "
            "write package.module:Class of a module that Python can import"
        ) from None
    missing = [name for name in _MEMBERS if not hasattr(found, name)]
    if missing:
        raise SuiteError(f"benchmark {shown(place)} lacks {', '.join(missing)}; see eval_pipeline.benchmarks.base")
    return found  # type: ignore[no-any-return]


_MEMBERS = (*Benchmark.__annotations__, "load", "score")
