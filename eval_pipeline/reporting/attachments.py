"""Reads the attachments of a batch whole, in a process of its own, so that a report can keep their text out.

What of it is protected is decided in :mod:`eval_pipeline.reporting.protected`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.reporting.material import Run
from eval_pipeline.reporting.protected import Attachments
from eval_pipeline.suites import LoadedSuite

PATIENCE_S = 120.0
"""For all attachments of a suite together."""
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from eval_pipeline.reporting.attachment_lines import main; main()"
)


class AttachmentError(EvalPipelineError):
    """The attachments that a report must keep out cannot be read, so the report cannot be made."""


def read_attachments(loaded: LoadedSuite, runs: Iterable[Run]) -> Attachments:
    """The text of every attachment that ``runs`` were given.

    Raises:
        AttachmentError: a file is not the one that the runs were given any more, or reading them took too long.
    """
    tasks = {task.task_id: task for task in loaded.tasks}
    paths: dict[str, Path] = {}
    for run in runs:
        if run.file_sha256 is None:
            continue
        task = tasks.get(run.cell.task_id)
        if task is None or task.attachment is None or task.attachment.sha256 != run.file_sha256:
            raise AttachmentError(
                f"suite {loaded.suite.name!r}: protect: the attachment of task {run.cell.task_id} is not the one that "
                "the batch ran with, so its text cannot be kept out of the report; restore the file, or drop "
                "attachments from protect"
            )
        paths[run.file_sha256] = task.attachment.path
    return _read(loaded.suite.name, list(dict.fromkeys(paths.values()))) if paths else Attachments()


def _read(suite: str, paths: list[Path]) -> Attachments:
    asked = json.dumps([str(path) for path in paths]).encode()
    import_path = json.dumps([str(Path(entry).absolute()) for entry in sys.path])
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-B", "-X", "utf8", "-c", _BOOT, import_path],
            input=asked,
            capture_output=True,
            # nothing of this process's environment: its secrets are no business of a parser
            env={"PATH": os.defpath, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            timeout=PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        took = f"took longer than {PATIENCE_S:.0f} s" if isinstance(error, subprocess.TimeoutExpired) else "failed"
        raise AttachmentError(
            f"suite {suite!r}: protect: reading its attachments {took}, so their text cannot be kept out of the "
            "report; drop attachments from protect, or leave out the file that is too large"
        ) from None
    lines: list[str] = []
    unread: list[str] = []
    for path, answer in zip(paths, map(json.loads, done.stdout.splitlines()), strict=True):
        lines += answer["lines"]
        if not answer["complete"]:
            unread.append(path.name)
    return Attachments(tuple(dict.fromkeys(lines)), tuple(unread))
