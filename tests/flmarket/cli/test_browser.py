"""The app in a real browser: Playwright drives Debian's Chromium. Both are installed by hand (CONTRIBUTING.md)."""

from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from support.scenarios import SMALL
from support.terminal import wait_for
from support.web import serving

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
CHROMIUM = which("chromium") or which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed (apt install chromium)", allow_module_level=True)

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(SMALL)
    return tmp_path


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """The address of a server of the app."""
    with serving(folder) as (_, port, token):
        yield f"http://127.0.0.1:{port}/?token={token}"


@pytest.fixture
def browser() -> Iterator["sync_api.Browser"]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


class Window:
    """A page with the app in it, and what the app has drawn: the terminal is a canvas, so words are read on the way."""

    def __init__(self, browser: "sync_api.Browser", address: str, **viewport: int) -> None:
        self.page = browser.new_page(viewport=viewport) if viewport else browser.new_page()
        self._seen = ""
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._take))
        self.page.goto(address)

    def _take(self, content: str | bytes) -> None:
        self._seen += content.decode("utf-8", "replace") if isinstance(content, bytes) else content

    def press(self, *keys: str) -> None:
        """Press keys; what has been drawn until now no longer counts."""
        self._seen = ""
        for key in keys:
            self.page.keyboard.press(key)

    def wait_for(self, words: str) -> None:
        def drawn() -> bool:
            self.page.wait_for_timeout(50)  # which lets frames come in
            return words in self._seen

        wait_for(drawn)

    @property
    def ended(self) -> bool:
        return bool(self.page.evaluate("document.body.classList.contains('-closed')"))


def complete(folder: Path) -> list[Path]:
    return [path for path in folder.glob("runs/*/*/seed-*/meta.json") if '"complete"' in path.read_text()]


def test_a_scenario_is_run_with_keys_and_the_app_is_left(
    folder: Path, address: str, browser: "sync_api.Browser"
) -> None:
    window = Window(browser, address, width=1200, height=800)
    window.wait_for("tiny.toml")
    window.press("/", *"tiny")
    window.wait_for("1 service")  # of its preview
    window.press("Enter")  # to the list
    window.press("Enter")
    window.wait_for("policies (mark")
    window.press("Enter")
    window.wait_for("complete")
    wait_for(lambda: complete(folder))
    assert [path.parent.name for path in complete(folder)] == ["seed-0000"]
    window.press("q")
    wait_for(lambda: window.ended)
    assert window.page.locator("#ended").is_visible()


def test_two_tabs_are_two_apps_and_a_reload_starts_another(address: str, browser: "sync_api.Browser") -> None:
    one, other = Window(browser, address), Window(browser, address)
    one.wait_for("quickstart")
    other.wait_for("quickstart")
    one.page.bring_to_front()
    one.press("q")
    wait_for(lambda: one.ended)
    other.page.bring_to_front()
    other.press("?")
    other.wait_for("Keys here")
    one.press()
    one.page.reload()
    one.wait_for("quickstart")
    assert not one.ended
