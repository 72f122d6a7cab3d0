"""The question before the app quits while runs are live."""

from tui.screens.dialog import Question


class QuitDialog(Question):
    """Asks whether to stop the live runs."""

    def __init__(self, running: int) -> None:
        runs = "A run is" if running == 1 else f"{running} runs are"
        text = f"[b]{runs} still live.[/b]\nThe rounds played so far stay on disk, for a replay or to resume from."
        super().__init__(text, "Quit and stop")
