"""papers/certificates.md: what ``flmarket certify`` finds of each rule of payment in papers/.

``PYTHONPATH=tools python -m certificates papers/certificates.md`` attacks the rules that have changed since they were
attacked last (one to three minutes of CPU each), keeps what was found in papers/certificates.json, writes the witnesses
into papers/KEY/witnesses, and renews the page; a test compares the two.

``CLAIMS`` of a paper's check.py has an entry for each rule, with the fields of ``Claim``.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import flmarket
from des.mechanism import DEFAULT
from des.money import MICRO, text
from flmarket.benchmark.certify.certificate import AttackPlan, Certificate, certify
from flmarket.benchmark.certify.players import SIDES, Side
from flmarket.benchmark.certify.sampling import Sizes
from flmarket.benchmark.certify.witness import write_witness
from flmarket.core.crash import guarded
from flmarket.core.text import counted
from flmarket.testing import MenuDeviation
from scenarios.file.reference import renew_named

PAPERS = Path(__file__).parents[1] / "papers"
FOUND = PAPERS / "certificates.json"
PROPERTIES = "truthfulness", "individual rationality", "budget feasibility", "incentive compatibility"

_NO_SCENARIO = re.compile(r"\(not written as a scenario: (.+)\)$")
_SAID = re.compile(r"^# (.+): it has (\S+) of (?:the|\d+) rounds? instead of (\S+)\.$", re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """What a paper claims of a rule, and how the rule is attacked."""

    rule: str  # the mechanism's name
    by: str  # where the paper claims it, or what is known of what it claims
    claimed: Sequence[str] = ()  # of ``PROPERTIES``, of clients
    options: Mapping[str, Any] = field(default_factory=dict)
    shape: Mapping[str, Any] = field(default_factory=dict)  # fields of ``Sizes`` that are not drawn
    rounds: int = 1
    markets: int = 100
    note: str = ""  # what a reader must know of the verdict
    # attacks menus in place of bids: returns how many types of clients were tried, and the best deviation of each that
    # has one
    menus: Callable[[], tuple[int, Sequence[MenuDeviation]]] | None = None

    @property
    def label(self) -> str:
        """The rule with its options, as tables and the results have it."""
        return ", ".join([self.rule, *(f"{key} = {value}" for key, value in self.options.items()), *self._places])

    @property
    def folder(self) -> Path:
        """The folder of its witnesses, in that of the paper."""
        return Path("witnesses", "-".join([*map(str, self.options.values()), *self._places]).replace(" ", "-"))

    @property
    def _places(self) -> list[str]:
        """Where it is attacked, if not in one round of markets of all sizes."""
        size = Sizes(**self.shape)
        named = (("service", size.services), ("client", size.clients), ("core", size.cores))
        words = [counted(number, name) for name, number in named if number]
        return [
            *words,
            *(["no budgets"] if not size.budgets else []),
            *([f"{self.rounds} rounds"] if self.rounds > 1 else []),
        ]


def papers() -> list[Path]:
    """Return the folders of all papers."""
    return sorted(page.parent for page in PAPERS.glob("*/README.md"))


def checks(paper: Path) -> ModuleType:
    """Return a paper's check.py, loaded by its path: folders there are named by papers, not for Python."""
    spec = spec_from_file_location(f"papers.{paper.name}.check", paper / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def claims(paper: Path) -> list[Claim]:
    """Return the claims of a paper's check.py; none if it has no rule of payment."""
    return [Claim(**entry) for entry in getattr(checks(paper), "CLAIMS", [])]


def said(witness: str) -> tuple[str, str, str]:
    """Return who misreports in the text of a witness, and what it has then, and of the truth."""
    [it] = _SAID.findall(witness)
    return it


def digest(paper: Path, claim: Claim) -> str:
    """Return the digest of what is attacked: the plug-ins but for comments and layout, and how."""
    tree = ast.dump(ast.parse((paper / "plugins.py").read_text(encoding="utf-8")))
    return sha256(repr((tree, claim.label, claim.markets)).encode()).hexdigest()[:16]


def found() -> dict[str, Any]:
    """Return what was found so far, by paper and label."""
    return json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}


def attack(name: str, place: int) -> dict[str, Any]:
    """Attack the rule of a paper's claim at a place, write its witnesses, and return what was found."""
    paper = PAPERS / name
    flmarket.load_plugin(paper / "plugins.py")
    claim = Claim(**checks(paper).CLAIMS[place])
    if claim.menus is not None:
        tried, deviations = claim.menus()
        largest = round(MICRO * max((it.gain for it in deviations), default=0))
        return {"tried": tried, "gains": len(deviations), "largest": largest}
    certificate = certify(
        AttackPlan(claim.rule, claim.options, Sizes(**claim.shape), markets=claim.markets, rounds=claim.rounds)
    )
    kept = {"clearings": certificate.clearings, "below_bid": flmarket.registered("mechanism", claim.rule).below_bid}
    return kept | {side: _side(paper, claim, certificate, side) for side in SIDES}


def _side(paper: Path, claim: Claim, certificate: Certificate, side: Side) -> dict[str, Any]:
    attacked, gaining = certificate.attacked[side], certificate.gaining(side)
    row = {"attacked": len(attacked), "gaining": len(gaining)}
    if not gaining:
        return row
    row |= {"largest": gaining[0].amount, "truth": gaining[0].truthful}
    folder = paper / claim.folder
    folder.mkdir(parents=True, exist_ok=True)
    reasons = []
    for gain in gaining:  # the largest one that a scenario can show
        why = _NO_SCENARIO.search(write_witness(certificate.plan, gain, folder, [paper / "plugins.py"]))
        if why is None:
            return row | {"seed": gain.market.seed}
        reasons.append(why[1])
    return row | {"without": reasons[0]}


def renew() -> None:
    """Attack what has changed, keep what is found as soon as it is there, and then renew the page."""
    known, now = found(), {}
    for paper in papers():
        for place, claim in enumerate(claims(paper)):
            key, now_of = f"{paper.name}: {claim.label}", digest(paper, claim)
            if known.get(key, {}).get("of") != now_of:
                print(f"{key} ...", file=sys.stderr, flush=True)
                # A process of its own, as papers may use one name for two things.
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
                    known[key] = {"of": now_of, **other.submit(attack, paper.name, place).result()}
                FOUND.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            now[key] = known[key]
    FOUND.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    renew_named(tables)


def tables() -> str:
    """Return the tables of the page, and the commands behind them."""
    known = found()
    rows = [(paper, claim, known[f"{paper.name}: {claim.label}"]) for paper in papers() for claim in claims(paper)]
    menus = [row for row in rows if row[1].menus is not None]
    rows = [row for row in rows if row[1].menus is None]
    numbered = list(enumerate(rows, 1))
    witnesses = [
        _witness(paper, claim, side) + f" --seed {row[side]['seed']} --plugin papers/{paper.name}/plugins.py"
        for paper, claim, row in rows
        for side in reversed(SIDES)
        if "largest" in row[side] and "without" not in row[side]
    ]
    clients = [
        f"| {number} | {_named(claim)} | {_paper(paper)} | {_claimed(claim)} | {claim.markets} "
        f"| {_verdict(paper, claim, row)} | {_kept(row)} | {claim.note} |"
        for number, (paper, claim, row) in numbered
    ]
    services = [
        f"| {number} | {_named(claim)} | {_gains(paper, claim, row, 'services')} |"
        for number, (paper, claim, row) in numbered
    ]
    of_menus = [
        f"| {_named(claim)} | {_paper(paper)} | {_claimed(claim)} | {row['gains']:,}{_most(row)} | {row['tried']:,} |"
        for paper, claim, row in menus
    ]
    others = [
        f"| {_paper(paper)} | [`{name}`](../docs/mechanisms/{name}.md) |"
        for paper in papers()
        if not claims(paper)
        for name in [_mechanism(paper)]
    ]
    return "\n".join(
        [
            "| | rule | paper | claimed of clients | markets | truthful clients | bids and budgets | note |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *clients,
            "\nThat services are truthful is claimed of none of these rules where we could read:\n",
            "| | rule | services that gain |",
            "| --- | --- | --- |",
            *services,
            "\nMenus of contracts, by `flmarket.testing.menu_deviations`:\n",
            "| menu | paper | claimed of types | types that keep more of another contract, or of none | types tried |",
            "| --- | --- | --- | --- | --- |",
            *of_menus,
            "\nNot attacked: papers that bring policies, and pay by a built-in mechanism, most of which have "
            "[certificates](../docs/mechanisms/certificates.md) (`scheduler` pays what is offered):\n",
            "| paper | mechanism |",
            "| --- | --- |",
            *others,
            "\nThe command of each row:\n",
            "```console",
            *(f"$ {_command(paper, claim)}  # {number}" for number, (paper, claim, _) in numbered),
            "```",
            "\nEach witness is played by:\n",
            "```console",
            *(f"$ flmarket run {line}" for line in witnesses),
            "```",
            "",
        ]
    )


def _paper(paper: Path) -> str:
    title = (paper / "README.md").read_text(encoding="utf-8").partition("\n")[0]
    return f"[{title.removeprefix('# ').partition(':')[0]}]({paper.name}/README.md)"


def _named(claim: Claim) -> str:
    name, *more = claim.label.split(", ")
    return ", ".join([f"`{name}`", *more])


def _claimed(claim: Claim) -> str:
    return f"{', '.join(claim.claimed) or 'nothing'} ({claim.by})"


def _verdict(paper: Path, claim: Claim, row: Mapping[str, Any]) -> str:
    broken = "**fails**" if "truthfulness" in claim.claimed else "not truthful"
    found = _gains(paper, claim, row, "clients")
    return f"{broken}: {found}" if row["clients"]["gaining"] else found


def _gains(paper: Path, claim: Claim, row: Mapping[str, Any], side: Side) -> str:
    its = row[side]
    if not its["gaining"]:
        return f"no gain found: {its['attacked']} attacked"
    shown = f"; [witness]({_witness(paper, claim, side).removeprefix('papers/')})"
    if "without" in its:
        shown = f"; no witness, as {its['without']}"
    elif claim.rounds > 1:  # of the largest gain that a scenario of several rounds can show, in its own market
        _, misreport, truth = said((PAPERS.parent / _witness(paper, claim, side)).read_text(encoding="utf-8"))
        shown += f", in which it has {misreport} instead of {truth}"
    return f"{its['gaining']} of {its['attacked']} gain{_most(its)}{shown}"


def _most(row: Mapping[str, Any]) -> str:
    if not row["largest"]:
        return ""
    share = ""
    if (truth := row.get("truth")) is not None:
        less = "from nothing" if truth == 0 else f"from {text(truth)}"
        share = f" ({row['largest'] / truth:.0%} more)" if truth > 0 else f" ({less})"
    return f", at most {text(row['largest'])}{share}"


def _kept(row: Mapping[str, Any]) -> str:
    return f"{'budgets' if row['below_bid'] else 'both'} kept in all {row['clearings']:,} clearings"


def _witness(paper: Path, claim: Claim, side: Side) -> str:
    return str(Path("papers", paper.name, claim.folder, f"{claim.rule}-{side}.toml"))


def _command(paper: Path, claim: Claim) -> str:
    options = [f"--option {key}={value}" for key, value in claim.options.items()]
    size = [f"--{key} {value}" if value else "--no-budgets" for key, value in claim.shape.items()]
    rounds = [f"--rounds {claim.rounds}"] if claim.rounds > 1 else []
    plugin = f"--plugin papers/{paper.name}/plugins.py"
    return " ".join(["flmarket certify", claim.rule, *options, *size, *rounds, plugin, f"--markets {claim.markets}"])


def _mechanism(paper: Path) -> str:
    """Return the mechanism of the paper's scenario."""
    scenario = tomllib.loads((paper / "scenario.toml").read_text(encoding="utf-8"))
    return str(scenario.get("market", {}).get("mechanism", DEFAULT))


if __name__ == "__main__":
    sys.exit(guarded(renew))
