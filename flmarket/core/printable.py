"""Foreign text made fit for a terminal, which would act on its control characters: names, paths, messages, cells."""


def printable(text: str) -> str:
    r"""Return a text on one line, with an escape (``\x1b``) for each character that is not shown as itself.

    These are control and format characters (among them those that override the writing direction), line ends, halves of
    surrogate pairs, and blanks other than the space.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def printable_lines(text: str) -> str:
    """Return a text as ``printable`` does, but leave its line ends."""
    return "\n".join(map(printable, text.split("\n")))
