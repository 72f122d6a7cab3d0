"""Messages from widgets to their screen."""

from textual.message import Message


class Seek(Message):
    """The user wants to see another round."""

    def __init__(self, round_: int) -> None:
        super().__init__()
        self.round = round_


class PanelWanted(Message):
    """The user wants to go to another panel."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Selected(Message):
    """The user has chosen a client or a service, for the order book. None leaves that choice as it is."""

    def __init__(self, service: int | None = None, client: int | None = None) -> None:
        super().__init__()
        self.service, self.client = service, client
