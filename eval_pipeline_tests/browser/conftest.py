"""A browser for the tests that click: the Chromium of this machine. Where there is none they are skipped, aloud."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eval_pipeline_tests.browser.chromium import opened_browser
from eval_pipeline_tests.browser.dev_server import DevServer, make_home

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCREENSHOTS = "EVAL_TEST_SCREENSHOTS"
"""A folder for the screenshots; without it they are thrown away."""

_PATIENCE_MS = 60_000


@pytest.fixture
def server() -> Iterator[DevServer]:
    """``dagster dev`` on a fresh home outside pytest's own folder, which is closed to the user of PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="eval-pipeline-browser-")).resolve()
    server = DevServer(make_home(folder / "home"))
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def page() -> Iterator[Page]:
    """An empty page of 1440 by 900."""
    with opened_browser() as browser:
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.set_default_timeout(_PATIENCE_MS)
        yield opened


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where screenshots go."""
    folder = Path(os.environ.get(SCREENSHOTS) or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
