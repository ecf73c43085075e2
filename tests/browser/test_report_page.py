"""The report in a real browser: nothing runs, nothing is asked for, nothing is wider than the screen."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import litgrade

HOSTILE = [
    "<script>window.ran = 1; alert(1)</script>",
    '</details></table></main><img src="https://evil.example/a.png" onerror="window.ran = 1">',
    '<a href="javascript:window.ran = 1" autofocus onfocus="window.ran = 1">here</a>',
    "<style>* { background: url(https://evil.example/b) }</style><link rel=stylesheet href=https://evil.example/c>",
    "<iframe src=https://evil.example></iframe><meta http-equiv=refresh content='0;url=https://evil.example'>",
    "\u202eturned \u2066around",
    "W" * 100_000,
]


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two runs over a collection in which every text is hostile."""
    cwd = tmp_path_factory.mktemp("hostile")
    folder = cwd / HOSTILE[0].replace("/", "")
    (folder / "qrels").mkdir(parents=True)
    n = len(HOSTILE)
    corpus = [{"_id": f"p{i}", "title": text, "text": "words of all", "metadata": {}} for i, text in enumerate(HOSTILE)]
    queries = [
        {
            "_id": f"q{i}",
            "text": f"words {text}",
            "metadata": {"area": HOSTILE[(i + 1) % n][:60], "keywords": [text], "domain": HOSTILE[(i + 2) % n]},
        }
        for i, text in enumerate(HOSTILE)
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [f"q{i}\tp{j}\t{(i + j) % 4}" for i in range(n) for j in range(n)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *pairs]))
    litgrade(
        "run", "-m", "arm=bm25", "collection=beir", f"collection.path='{folder}'", "tracking=none",
        "bm25.k1=1,1.5", "hydra.sweep.dir=sweep", cwd=cwd,
    )  # fmt: skip
    done = litgrade("report", "runs=[sweep]", "tracking=none", cwd=cwd)
    return cwd / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_texts_do_nothing(browser, page_path, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    requests, told = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.on("dialog", lambda dialog: (told.append("dialog"), dialog.dismiss()))
    page.goto(page_path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("window.ran") is None
    assert [url for url in requests if not url.startswith("data:")] == [page_path.as_uri()]
    assert told == []
    assert page.evaluate(
        "[document.scripts.length, document.querySelectorAll('iframe, link[rel=stylesheet]').length]"
    ) == [0, 0]
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    page.close()


def test_works_without_scripting_and_by_keyboard(browser, page_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_path.as_uri())
    first = page.locator("details.query").first
    assert not first.locator("table").first.is_visible()
    first.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert first.locator("table").first.is_visible()
    page.get_by_role("link", name="Provenance").click()
    assert page.url.endswith("#g1-provenance")
    context.close()
