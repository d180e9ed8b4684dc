"""A connection that finds the embedded server dead starts it again, in whatever process needs it first.

Nobody watches over the server: it belongs to all processes that use it, and any of them may be the one to notice that
it was killed. Starting and joining it is in :mod:`eval_pipeline.db.embedded`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from eval_pipeline.db import embedded


def reviving(engine: Engine, data_dir: Path) -> Engine:
    """``engine``, whose connections start the server of ``data_dir`` again if it has died.

    Raises:
        DatabaseError: from a connection attempt, if the server cannot be started.
    """

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, record: Any, arguments: tuple[Any, ...], parameters: dict[str, Any]) -> Any:
        try:
            return dialect.connect(*arguments, **parameters)
        except dialect.loaded_dbapi.OperationalError:
            # a process that has given its share back is ending, and must not leave a server behind
            if not embedded.is_held(data_dir):
                raise
            embedded.server(data_dir)
            return dialect.connect(*arguments, **parameters)

    return engine
