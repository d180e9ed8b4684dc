"""Where the code of a model runs: kept apart by the strongest means of this machine, and always within
limits.
"""

from __future__ import annotations

from eval_pipeline.tools.sandbox.policy import LEVELS, Level, Limits
from eval_pipeline.tools.sandbox.probe import best_level, require

__all__ = ["LEVELS", "Level", "Limits", "best_level", "require"]
