"""Editing a file in the user's own editor, in the terminal that the app leaves meanwhile."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

from textual.app import App, SuspendNotSupported

from tui.terminal import by_default


def edit(app: App[None], path: Path) -> bool:
    """Edit a file in the editor that VISUAL or EDITOR names; tell the user, and return False, if that cannot be."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not editor:
        app.notify("Set VISUAL or EDITOR to the command of your editor.", severity="warning", timeout=5)
        return False
    try:
        with app.suspend(), by_default(signal.SIGTSTP):  # the editor may be suspended
            subprocess.run([*editor, str(path)], check=False)  # noqa: S603 - the user's own command
    except SuspendNotSupported:
        app.notify("No editor can be opened from here; press e for the form.", severity="warning", timeout=5)
        return False
    except OSError as error:
        app.notify(f"{editor[0]}: cannot be started: {error.strerror}", severity="error", timeout=6)
        return False
    return True
