"""A browser, where there is one; the tests that need it say so once and are passed over."""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import regard

TATOEBA = Path(__file__).parents[1] / "models" / "tatoeba-zh-en"
RAIN = "下雨的时候，我喜欢在家看书。"
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


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The folder of a run with curves, samples and two snapshots."""
    folder = tmp_path_factory.mktemp("page") / "tea.run"
    folder.mkdir()
    lines = [{"step": 50 * n, "loss": 4 / n, "lr": 1e-3} for n in range(1, 9)]
    lines.append({"step": 400, "dev_loss": 0.61, "dev_bleu": 26.5})
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = [{"step": step, "src": RAIN, "said": f"rain {step}"} for step in (200, 400)]
    (folder / "samples.jsonl").write_text("\n".join(map(json.dumps, said)))
    for name in ("step-00000200", "step-00000400"):
        shutil.copytree(TATOEBA, folder / "snapshots" / name)
    return folder


@pytest.fixture(scope="session")
def page_server(serve_all, run):
    started = serve_all(TATOEBA, "--run", run, "--deadline", "60")
    assert started.post("/api/v1/attend", {"text": RAIN}).status_code == 200  # torch is loaded
    return started


@pytest.fixture
def open_served(browser, page_server):
    """A function that opens the page; complaints and requests to other hosts are faults."""
    contexts, faults = [], []

    def opened(state="", *, width=1280, theme="light", language="en-US", scripts=True, ready=None):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            locale=language,
            java_script_enabled=scripts,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if outside(request) else None)
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.goto(f"{page_server.address}/#{state}")
        if scripts:
            page.locator(ready or ".step-body .card, .sheet-card, .charts").first.wait_for()
        return page

    def outside(request):
        there = urlsplit(request.url)
        return there.scheme in ("http", "https") and there.port != page_server.port

    opened.faults = faults
    yield opened
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture(scope="session")
def thorough():
    """The model of the server, in torch."""
    return regard.load(TATOEBA, engine="torch")
