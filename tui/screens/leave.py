"""Leaving while runs are going on."""

from tui.screens.dialog import Question


class LeaveDialog(Question):
    """Asks whether to stop what runs."""

    def __init__(self, running: int) -> None:
        runs = "A run is" if running == 1 else f"{running} runs are"
        text = f"[b]{runs} still going on.[/b]\nThe rounds so far stay on disk and can be replayed."
        super().__init__(text, "Quit and stop")
