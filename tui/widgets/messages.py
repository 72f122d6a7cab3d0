"""Messages that screens and widgets send each other."""

from textual.message import Message


class Seek(Message):
    """Somebody wants to look at another round."""

    def __init__(self, round_: int) -> None:
        super().__init__()
        self.round = round_


class PanelWanted(Message):
    """A user wants to go to another panel.

    Attributes:
        number: the panel's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Selected(Message):
    """A client or a service was chosen, to be looked at in the order book. None leaves that one as it is."""

    def __init__(self, service: int | None = None, client: int | None = None) -> None:
        super().__init__()
        self.service, self.client = service, client
