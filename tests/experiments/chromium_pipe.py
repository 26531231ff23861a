"""A headless Chromium steered through a pair of pipes (DevTools protocol), standard library only."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
DEADLINE_S = 60.0
TRAMPOLINE = """
import fcntl, os, sys
high = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1:3]]
os.dup2(high[0], 3), os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from descriptor 3 and writes to 4; this puts our pipes there and becomes Chromium."""


def find_chromium() -> str | None:
    """Path of a Chromium on this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Browser:
    """One browser with one tab; messages are JSON, separated by NUL bytes."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer, self._next, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._from, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError("the browser does not answer")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its result; events on the way are kept."""
        self._next += 1
        message = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            got = self._receive(deadline)
            if got.get("id") == self._next:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait(self, method: str) -> None:
        """Wait for an event of the page."""
        deadline = time.monotonic() + DEADLINE_S
        while all(event.get("method") != method for event in self.events):
            self.events.append(self._receive(deadline))

    def open(self, url: str, width: int, *, dark: bool = False) -> None:
        """Load a page at a width and forget what happened before."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression on the page."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"]["text"])
        return got["result"].get("value")

    def errors(self) -> list[str]:
        """Script errors and error lines of the console since the page was opened."""
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"]["text"])
            entry = event.get("params", {}).get("entry", {})
            if event.get("method") == "Log.entryAdded" and entry["level"] == "error":
                found.append(entry["text"])
        return found

    def requests(self) -> list[str]:
        """Everything the page asked for since it was opened, embedded data aside."""
        asked = (e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent")
        return [url for url in asked if not url.startswith("data:")]


@contextmanager
def browser(executable: str, profile: Path) -> Iterator[Browser]:
    """A fresh browser with its own profile folder."""
    its_input, to_browser = os.pipe()
    from_browser, its_output = os.pipe()
    pipes = [str(its_input), str(its_output)]
    command = [
        sys.executable,
        "-c",
        TRAMPOLINE,
        *pipes,
        executable,
        *FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
    ]
    process = subprocess.Popen(
        command, pass_fds=(its_input, its_output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(its_input)
    os.close(its_output)
    try:
        yield Browser(to_browser, from_browser)
    finally:
        process.kill()
        process.wait()
        os.close(to_browser)
        os.close(from_browser)


def texts_cut(chromium: Browser, pictures: str) -> list[str]:
    """Texts of the open page's pictures, a CSS selector of SVGs, that reach beyond their picture."""
    found: list[str] = chromium.evaluate(
        """[...document.querySelectorAll('PICTURES')].flatMap(s => {
      const box = s.getBoundingClientRect();
      return [...s.querySelectorAll('text')].filter(t => {
        const b = t.getBoundingClientRect();
        return b.width && (b.left < box.left - 2 || b.right > box.right + 2
          || b.top < box.top - 2 || b.bottom > box.bottom + 2);
      }).map(t => t.textContent);
    })""".replace("PICTURES", pictures)
    )
    return found
