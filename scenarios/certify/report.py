"""What a certificate says, in words, and the files of its witnesses."""

from collections.abc import Iterator
from pathlib import Path

from des.money import text
from fl.counting import counted
from fl.errors import InputError
from fl.files import replacing
from scenarios.certify.certificate import Certificate
from scenarios.certify.search import SIDES
from scenarios.certify.witness import NoScenarioError, file_name, witness, words


def title(certificate: Certificate) -> str:
    """Return what was attacked, and how hard."""
    plan, shape = certificate.plan, certificate.plan.shape
    name = " ".join([plan.mechanism, *(f"{key}={value}" for key, value in plan.options.items())])
    sizes = [
        counted(size, noun) if size else f"{low} to {high} {noun}s"
        for size, low, high, noun in (
            (shape.services, 2, 4, "service"),
            (shape.clients, 2, 5, "client"),
            (shape.cores, 1, 2, "core"),
        )
    ]
    budgets = "budgets that can bind" if shape.budgets else "budgets that never bind"
    return (
        f"{name}: {counted(certificate.markets, 'market')} with {', '.join(sizes)} and {budgets}; "
        f"seed {plan.seed}, at most {plan.tries:,} misreports for each party"
    )


def rows(certificate: Certificate) -> Iterator[tuple[str, str, str]]:
    """Yield each property, whether it held, and what was found."""
    held = f"in all {counted(certificate.clearings, 'clearing')}"
    yield "individual rationality of clients", "held", f"price at least the bid {held}"
    yield "individual rationality of services", "held", f"price at most the offer {held}"
    yield "budget balance", "held", f"clients get what services pay, within the budgets, {held}"
    for side in SIDES:
        found = certificate.found[side]
        if found.gain is None:
            yield f"truthfulness of {side}", "no gain found", f"{counted(found.parties, side[:-1])} attacked"
            continue
        gain = found.gain
        share = f"{gain.amount / gain.truthful:.0%} more" if gain.truthful > 0 else "from nothing"
        yield (
            f"truthfulness of {side}",
            "fails",
            f"{found.gaining:,} of {counted(found.parties, side[:-1])} gain; the largest gain is "
            f"{text(gain.amount)} ({share})",
        )


def write_witnesses(certificate: Certificate, folder: Path) -> Iterator[str]:
    """Write the markets with the largest gains as scenario files; yield a line for each."""
    for side in SIDES:
        found = certificate.found[side]
        if found.gain is None:
            continue
        try:
            made = witness(certificate, side)
        except NoScenarioError as error:
            yield f"{words(found.gain)} (not written as a scenario: {error})"
        else:
            yield _write(folder / file_name(certificate.plan.mechanism, side), made.scenario, made.words, made.seed)


def _write(path: Path, scenario: str, shown: str, seed: int) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(scenario.encode())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}; choose another folder with --out") from error
    return f"{path}: {shown}\n  flmarket run {path} --seed {seed}"
