"""Failures of widgets that have been removed: messages and workers may still be on their way to them."""

from traceback import walk_tb

from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.widget import MountError


def is_removed(error: BaseException) -> bool:
    """Whether a widget fails because it is being removed, or the app ends: its parts are not there any more."""
    if not isinstance(error, NoMatches | MountError):
        return False
    node = [frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__)][-1]
    return isinstance(node, DOMNode) and is_going(node)


def is_going(node: DOMNode) -> bool:
    """Whether a widget, or one around it, is being removed, or the app ends."""
    return not node.is_attached or any(around._pruning for around in node.ancestors_with_self)
