"""Find a Chromium for the journeys, in the system or in Playwright; install Playwright's or
Debian's if there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

PATH_VARIABLE = "GADGET_TEST_BROWSER"
PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
DEBIAN_PACKAGES = PROGRAMS[:2]
LIGHTEST = PROGRAMS[0]
"""The windowless browser, in which a new page takes a third of the CPU time that it takes in the
others."""
INSTALL = ("apt-get", "install", "-qq", "--yes")
MISSING = (
    "The journeys need a browser and none could be installed. Install chromium or google-chrome, or let "
    f"{PATH_VARIABLE}=/path/to/chromium name one."
)


class BrowserMissingError(Exception):
    """No browser was found and none could be installed."""


def find_browser() -> str:
    """Return the path of a Chromium, the lightest available; install one if there is none.

    Raises:
        BrowserMissingError: none could be installed; the text says what to do.
    """
    given = os.environ.get(PATH_VARIABLE)
    if given:
        return given
    found = _find_lightest() or _find_on_path() or _find_in_playwright()
    if found is None and _succeeds([sys.executable, "-m", "playwright", "install", "chromium"]):
        found = _find_in_playwright()
    if found is None and _install_debian_package():
        found = _find_on_path()
    if found is None:
        raise BrowserMissingError(MISSING)
    os.environ[PATH_VARIABLE] = found
    return found


def find_full_browser() -> str:
    """Return the path of a Chromium that can show notifications, which the lightest one cannot
    show; install one if needed.

    Raises:
        BrowserMissingError: none could be installed; the text says what to do.
    """
    given = os.environ.get(PATH_VARIABLE, "")
    if given and LIGHTEST not in given:
        return given
    found = _find_on_path(PROGRAMS[1:]) or _find_in_playwright()
    if found is None and _may_install() and _succeeds([*INSTALL, DEBIAN_PACKAGES[1]]):
        found = _find_on_path(PROGRAMS[1:])
    if found is None:
        raise BrowserMissingError(MISSING)
    return found


def launch_arguments() -> list[str]:
    """Return the arguments that Chromium needs as root or in a container with little shared
    memory."""
    arguments = ["--disable-dev-shm-usage"]
    return [*arguments, "--no-sandbox"] if os.getuid() == 0 else arguments


def _find_lightest() -> str | None:
    """Return the path of the lightest browser, or None. If Debian's Chromium is already installed,
    first install the lightest browser beside it, which is quick."""
    if not shutil.which(LIGHTEST) and shutil.which(DEBIAN_PACKAGES[1]) and _may_install():
        print(f"Installing {LIGHTEST} ...", flush=True)
        _succeeds([*INSTALL, "--no-remove", LIGHTEST])
    return shutil.which(LIGHTEST)


def _find_on_path(programs: Sequence[str] = PROGRAMS) -> str | None:
    return next((found for name in programs if (found := shutil.which(name))), None)


def _find_in_playwright() -> str | None:
    """Return the path of Playwright's own Chromium, or None if it does not start: on a bare
    machine, its libraries may be missing."""
    # The caller's thread may already run Playwright, which one thread cannot start twice.
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(_probe_playwright).result()


def _probe_playwright() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
        if not os.path.exists(path):  # noqa: PTH110
            return None
        try:
            playwright.chromium.launch(executable_path=path, args=launch_arguments()).close()
        except PlaywrightError:
            return None
    return path


def _may_install() -> bool:
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def _install_debian_package() -> bool:
    if not _may_install():
        return False
    print("Installing chromium ...", flush=True)
    _succeeds(["apt-get", "update", "-qq"])
    return any(_succeeds([*INSTALL, package]) for package in DEBIAN_PACKAGES)


def _succeeds(command: list[str]) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False
    )
    return done.returncode == 0
