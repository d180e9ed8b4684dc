"""The rows of the database's tests serve here too."""

from __future__ import annotations

from eval_pipeline_tests.db.conftest import rows, shared_engine

__all__ = ["rows", "shared_engine"]
