"""A browser, where there is one; the tests that need it say so once and are passed over."""

import os
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        found = next(filter(None, map(shutil.which, NAMES)), own if own.exists() else None)
        if found is None:
            reason = "no Chromium; apt-get install chromium fonts-noto-cjk"
            if os.environ.get("REGARD_NEED_BROWSER") == "1":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
        # In a container the tests are root, whom Chromium's sandbox refuses.
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()
