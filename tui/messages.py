"""Messages that screens and widgets send each other."""

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from tui.session import Session


class SessionChanged(Message):
    """A run has new rounds, or another phase. Sent once until ``Session.seen`` is called, however much happens."""

    def __init__(self, session: "Session") -> None:
        super().__init__()
        self.session = session


class Seek(Message):
    """Somebody wants to look at another round."""

    def __init__(self, round_: int) -> None:
        super().__init__()
        self.round = round_


class Selected(Message):
    """A client or a service was chosen, to be looked at in the order book. None leaves that one as it is."""

    def __init__(self, service: int | None = None, client: int | None = None) -> None:
        super().__init__()
        self.service, self.client = service, client
