"""The benchmarks there are, by name. How each one loads and scores belongs in its own module."""

from __future__ import annotations

from eval_pipeline.benchmarks.analysis import Analysis
from eval_pipeline.benchmarks.base import Benchmark
from eval_pipeline.benchmarks.cppx import Cppx
from eval_pipeline.benchmarks.gaia import Gaia
from eval_pipeline.benchmarks.research import Research
from eval_pipeline.benchmarks.sql import Sql
from eval_pipeline.errors import SuiteError
from eval_pipeline.ids import shown

BENCHMARKS: dict[str, Benchmark] = {entry.name: entry for entry in (Gaia(), Sql(), Research(), Analysis(), Cppx())}


def benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``.

    Raises:
        SuiteError: there is none of that name.
    """
    if name not in BENCHMARKS:
        raise SuiteError(f"there is no benchmark {shown(name)}; known are {', '.join(sorted(BENCHMARKS))}")
    return BENCHMARKS[name]
