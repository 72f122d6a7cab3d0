"""The scenario file: every key, its unit, its limits and its default.

The models are the one source for the loader's checks, the reference in the documentation and the form in the TUI
(``scenarios.file.keys``): each key is ``Annotated`` with its limits, its unit and its sentence. What involves several
keys at once stands in ``scenarios.file.checks``.
"""

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from operator import eq
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    create_model,
    field_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError

from des.behaviour import BEHAVIOURS, TRUTHFUL
from des.cost import COSTS, LINEAR, PrivateType
from des.mechanism import DEFAULT, MECHANISMS
from des.money import to_micro
from des.response import RESPONSES
from des.schedule import ComingAndGoing
from fl.arrays import IntArray
from fl.backends import BACKENDS
from fl.data.dirichlet import LEAST, MOST
from fl.data.emd import largest_emd
from fl.data.own_files import is_path
from fl.data.registry import DATASETS, info
from fl.data.validation_split import LARGEST_SHARE
from fl.training.aggregator import AGGREGATORS, FEDAVG
from fl.training.fused import parameter_count
from fl.training.jobs import HONEST, Conduct
from fl.training.models import MODELS
from fl.training.regime import Device, Kernel, Regime
from fl.training.trigger import TRIGGERS, WAIT
from flmarket.core.declared import Unit, sentence_of
from flmarket.core.names import LONGEST_NAME, NAME_PATTERN, unknown_plugin
from flmarket.core.plugins import Registry
from learning.policy import POLICIES
from learning.statistics.measure import ALL_MEASURES
from scenarios.file.problems import Path
from scenarios.file.regimes import KEYS, Chosen, choose

LARGEST_SUM = 1_000_000_000  # of money; keeps a million rounds of micro-units well inside 64 bits
LEAST_SPEED, LARGEST_SPEED = 1e-6, 1e6  # of clients, and of their links in Mbps
LARGEST_DEPTH = 32  # of lists and tables within one another
MOST_SWEPT = 100  # keys of one sweep
MOST_SERVICES = 1_000
LEAST_RATE = 1e-8  # of arrivals in a second: so many services come within 64 bits of microseconds
STANDING = ", as cores come free"  # what rounds are cleared by ends in this where work outlasts them
IN_TURN = ", client after client"  # and in this where clients come one after another
OWN = "scenario"  # the type of problems whose sentences are made here; pydantic makes the others
DATASET = DATASETS.kind  # of name that a path may stand for

REGISTRIES: tuple[Registry[Any], ...] = (
    POLICIES,
    MODELS,
    DATASETS,
    MECHANISMS,
    BEHAVIOURS,
    COSTS,
    RESPONSES,
    AGGREGATORS,
    TRIGGERS,
    ALL_MEASURES,
)
"""All kinds of plug-ins. A scenario can name those of all but the measures, which reports name."""


def six_decimals(amount: float) -> float:
    """Refuse money and times that cannot be counted in millionths."""
    if round(amount, 6) != amount:
        raise PydanticCustomError(OWN, "has more than six decimals: {given}", {"given": repr(amount)})
    return amount


def plain(value: Any) -> Any:
    """Refuse what could not be written back to TOML and compared: dates, infinite numbers, endless integers."""
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > LARGEST_DEPTH:
            raise PydanticCustomError(OWN, f"must not hold lists and tables more than {LARGEST_DEPTH} deep")
        match item:
            case Mapping():
                waiting.extend((below, depth + 1) for below in item.values())
            case list() | tuple():
                waiting.extend((below, depth + 1) for below in item)
            case float() if not math.isfinite(item):
                raise PydanticCustomError(OWN, "must hold finite numbers only")
            case int() if not -(2**63) <= item < 2**63:
                raise PydanticCustomError(OWN, "must hold integers of at most 64 bits")
            case datetime.date() | datetime.time():
                raise PydanticCustomError(OWN, "must not hold a date or a time of day")
    return value


def _installed(kind: str, name: str, info: ValidationInfo) -> str:
    """Refuse a name that is not among those of the validation's context, which has them by kind."""
    known = info.context.get(kind) if info.context else None
    if known is not None and name not in known and not (kind == DATASET and is_path(name)):
        # As a value of the context, because names may hold braces.
        raise PydanticCustomError(OWN, "{problem}", {"problem": unknown_plugin(kind, name, known)})
    return name


Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]
Share = Annotated[float, Ge(0), Le(1)]
Count = Annotated[int, Ge(1), Le(1_000_000)]  # also the number of a round
Item = TypeVar("Item")
Several = Annotated[tuple[Item, ...], Field(strict=False)]  # which a list of TOML may become
Plain = Annotated[Any, AfterValidator(plain)]
Options = Annotated[dict[str, Any], AfterValidator(plain)]
Money = Annotated[float, Ge(0), Le(LARGEST_SUM), AfterValidator(six_decimals)]
Mbps = Annotated[float, Ge(LEAST_SPEED), Le(LARGEST_SPEED), AfterValidator(six_decimals)]
Span = Annotated[float, Gt(0), Le(1e12), AfterValidator(six_decimals)]
FilePath = Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00]*$")]

# Names of what is installed; the form offers those of the kind.
DatasetName = Annotated[str, AfterValidator(partial(_installed, DATASET)), Field(json_schema_extra={"names": DATASET})]
PolicyName = Annotated[str, AfterValidator(partial(_installed, "policy")), Field(json_schema_extra={"names": "policy"})]
ModelName = Annotated[Name, AfterValidator(partial(_installed, "model")), Field(json_schema_extra={"names": "model"})]
MechanismName = Annotated[
    str, AfterValidator(partial(_installed, "mechanism")), Field(json_schema_extra={"names": "mechanism"})
]
CostName = Annotated[str, AfterValidator(partial(_installed, "cost")), Field(json_schema_extra={"names": "cost"})]
AggregatorName = Annotated[
    str, AfterValidator(partial(_installed, "aggregator")), Field(json_schema_extra={"names": "aggregator"})
]
BehaviourName = Annotated[
    str, AfterValidator(partial(_installed, "behaviour")), Field(json_schema_extra={"names": "behaviour"})
]
TriggerName = Annotated[
    str, AfterValidator(partial(_installed, "trigger")), Field(json_schema_extra={"names": "trigger"})
]
ResponseName = Annotated[
    str, AfterValidator(partial(_installed, "response")), Field(json_schema_extra={"names": "response"})
]


def _with_sentences(schema: dict[str, Any], table: type[BaseModel]) -> None:
    """Give the keys of a table's JSON schema their sentences and units."""
    for name, field in table.model_fields.items():
        for note in field.metadata:
            if isinstance(note, Doc):
                schema["properties"][name]["description"] = sentence_of(note)
            elif isinstance(note, Unit):
                schema["properties"][name]["unit"] = note.name


class TomlTable(BaseModel):
    """A table of the scenario file: read-only, no unknown keys, no value taken for another type."""

    # Text is not a number and a boolean not an integer.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, json_schema_extra=_with_sentences
    )


def _part(table: type[BaseModel], keys: Mapping[str, Any], whole: str, path: str = "") -> dict[str, Any]:
    """Return keys of a table for one in which an absent key is as in the whole; a key that is a table has a part."""
    part: dict[str, Any] = {}
    for name, inner in keys.items():
        field: Any = table.model_fields[name]
        if inner:
            part[name] = inner, Field(default=inner(), exclude_if=partial(eq, inner()))
        else:  # an empty list is no value: in the whole, it stands for an absent key
            notes = [note for note in field.metadata if not isinstance(note, Doc)]
            notes += [MinLen(1)] if field.default == () else []
            extra = field.json_schema_extra or {}
            names = {"names": extra["names"]} if "names" in extra else {}  # which the form offers
            absent = Field(default=None, json_schema_extra={**names, "absent": f"as in {whole}"})
            part[name] = Annotated[field.annotation | None, *notes, Doc(f"As {path}{name} in {whole}."), absent]
    return part


class CostUnit(TomlTable):
    """A client's private type: a number that it draws once for the whole run, and that only it knows."""

    uniform: Annotated[
        Several[Annotated[float, Ge(0), Le(1e9)]],
        MaxLen(2),
        Doc("The lowest and the highest type; each client's is drawn from all between them."),
    ] = ()
    choices: Annotated[
        Several[Annotated[float, Ge(0), Le(1e9)]],
        MaxLen(100),
        Doc("The set that each client's type is drawn from, in place of uniform. Both absent: it is 1 for all."),
    ] = ()
    each: Annotated[
        Literal["client", "service"],
        Doc("client: a client has one type; service: it draws one for each service."),
    ] = "client"

    def distribution(self) -> PrivateType:
        """Return the distribution that types are drawn from."""
        ends = (self.uniform[0], self.uniform[-1]) if self.uniform else None
        return PrivateType(ends, self.choices or (1.0,), per_service=self.each == "service")


class ClientCost(TomlTable):
    """The cost of a round's work to a client. A truthful client bids that."""

    kind: Annotated[
        CostName,
        Field(exclude_if=lambda it: it == LINEAR),
        Doc("""linear (the paper's: unit times per_sample * D - per_emd * EMD), unit (unit * D), quality
        (unit * exp(-EMD)), energy (of chip and radio, at unit a joule), or a plug-in; docs/costs.md."""),
    ] = LINEAR
    per_sample: Annotated[
        float | None,
        Ge(0),
        Le(1_000_000),
        Unit("money per image"),
        Field(json_schema_extra={"absent": "required, or 1 with a unit", "usual": True}),
        Doc("Cost of each image (D), money, where the kind is linear."),
    ] = None
    per_emd: Annotated[
        float | None,
        Ge(-1_000_000),
        Le(1_000_000),
        Unit("money per unit of EMD"),
        Field(json_schema_extra={"absent": "required, or 0 with a unit", "usual": True}),
        Doc("Money taken off for each unit of EMD, where the kind is linear; the cost must stay at or above 0."),
    ] = None
    unit: Annotated[
        CostUnit,
        Field(exclude_if=lambda it: it == CostUnit()),
        Doc("The private type that costs are multiplied by; a plug-in may use it in another way."),
    ] = CostUnit()
    options: Annotated[
        Options, Field(exclude_if=lambda it: not it), Doc("Settings of the cost, as the cost documents them.")
    ] = {}
    noise: Annotated[
        Share,
        Doc("""In each round, all that a client's work costs is multiplied by a number of its own, drawn uniformly
        between 1 - noise and 1 + noise. 0: costs tell the data, as in the paper."""),
    ] = 0.0

    def plugin(self, table: Path = ("clients", "cost")) -> "NamedPlugin":
        """Return the plug-in that stands in a table, by default the one of all clients."""
        options = {**self.options, **self.prices} if self.kind == LINEAR else self.options
        return NamedPlugin(COSTS, self.kind, options, table, "kind")

    @property
    def prices(self) -> dict[str, float]:
        """The prices of a linear cost that stand in the file."""
        both = {"per_sample": self.per_sample, "per_emd": self.per_emd}
        return {key: price for key, price in both.items() if price is not None}


class ClientBehaviour(TomlTable):
    """The clients' behaviour: what they bid, given their costs, and what they report of their data."""

    kind: Annotated[
        BehaviourName,
        Doc("""truthful (clients bid their costs, as in the paper), markup, adaptive, misreport, ring, or a plug-in;
        docs/behaviours.md."""),
    ] = TRUTHFUL
    options: Annotated[Options, Doc("Settings of the behaviour, as the behaviour documents them.")] = {}


class ClientResponse(TomlTable):
    """The clients' response: how much they do of the work that they were awarded."""

    kind: Annotated[
        ResponseName | None,
        Field(json_schema_extra={"absent": "all of it"}),
        Doc("""quadratic (the best response to a quadratic cost), moral-hazard (promise everything, and shirk where it
        pays), or a plug-in; docs/responses.md. Absent: clients do all of the work, as in the paper."""),
    ] = None
    of: Annotated[
        Literal["data", "epochs", "epsilon", "speed"],
        Doc("""The thing that a client gives a part of: its data, its local epochs, its speed (all of the work, more
        slowly), or its privacy (epsilon): then it clips its update and adds Gaussian noise. Epochs and epsilon need
        models that are really trained."""),
    ] = "data"
    epsilon: Annotated[float, Gt(0), Le(1e6), Doc("The privacy loss of all of the work, where of is epsilon.")] = 1.0
    delta: Annotated[
        float, Gt(0), Lt(1), Doc("The probability with which the privacy loss may be larger (differential privacy).")
    ] = 1e-5
    clip: Annotated[
        float, Gt(0), Le(1e6), Doc("The L2 norm to which a client clips its update before it adds noise.")
    ] = 1.0
    options: Annotated[
        Options, Field(exclude_if=lambda it: not it), Doc("Settings of the response, as the response documents them.")
    ] = {}


class ClientLabelMix(TomlTable):
    """The distribution of the labels of a client's data, in place of an EMD."""

    dirichlet: Annotated[
        float | None,
        Ge(LEAST),
        Le(MOST),
        Doc("""Concentration of the Dirichlet distribution that each label mix is drawn from, in place of an EMD from
        a list: 0.1 gives clients one or two labels, 100 nearly all alike. Absent: EMDs are those of emd."""),
    ] = None


class ClientLasting(TomlTable):
    """The persistence of a client's data from round to round."""

    persistence: Annotated[
        Share,
        Doc("""Probability that a round keeps a client's lasting data size, EMD and label mix for a service; else they
        are drawn for that round alone. 0: new in each round, as in the paper; 1: always the same."""),
    ] = 0.0
    drift: Annotated[
        Share,
        Doc("""Probability, in each round, that a client's lasting sizes, EMDs and label mixes are drawn again, and
        last from then on."""),
    ] = 0.0


class ClientPresence(TomlTable):
    """The times that clients stay and are away: exponential, so that they come as in a Poisson process."""

    stay_seconds: Annotated[
        Span | None, Unit("seconds"), Doc("Mean time that a client stays, seconds. Absent: clients are always there.")
    ] = None
    away_seconds: Annotated[
        Span | None,
        Unit("seconds"),
        Doc("Mean time that it is away, seconds, in the hours in which clients come."),
    ] = None
    hours: Annotated[
        Several[Annotated[float, Ge(0), Le(24)]],
        MinLen(2),
        MaxLen(2),
        Doc("""The hours of the day between which clients come, perhaps over midnight ([22, 7]); a run begins at
        midnight."""),
    ] = (0.0, 24.0)
    other_hours: Annotated[
        Share, Doc("The rate at which they come in the other hours, as a part of that in these.")
    ] = 0.0

    def draws(self, clients: int, seconds: float) -> float:
        """Return about how many stays are drawn in a time, with those that are refused where few come at some hours."""
        away, thinned = self.away_seconds or 1.0, self.other_hours < 1 and self.hours != (0.0, 24.0)
        return clients * seconds / (away if thinned else away + (self.stay_seconds or 1.0))

    @property
    def given(self) -> bool:
        """Whether clients come and go so."""
        return self.stay_seconds is not None and self.away_seconds is not None

    def drawn(self, clients: int, until: int, seed: int) -> IntArray:
        """Return when clients come and go, as ``ComingAndGoing.draw`` does."""
        stay, away = (to_micro(it or 0) for it in (self.stay_seconds, self.away_seconds))
        begin, end = (to_micro(hour * 3_600) for hour in self.hours)
        return ComingAndGoing(stay, away, (begin, end), self.other_hours).draw(clients, until, seed)


def _given(part: TomlTable) -> dict[str, Any]:
    """Return the keys of a part of a table that stand in the file."""
    return {key: value for key, value in part if value is not None}


class Clients(TomlTable):
    """The clients, and the draws of their data in each round."""

    count: Annotated[Count, Doc("Clients in the market (C).")]
    cores: Annotated[int, Ge(1), Le(1_024), Doc("Services that a client can serve at once (K).")]
    data_size: Annotated[
        Several[Count],
        MaxLen(100),
        Unit("images"),
        Doc("""The set that a client's data size for a service (D, images) is drawn from each round. Required, unless
        there is a data.partition: then absent means all that the client owns."""),
    ] = ()
    emd: Annotated[
        Several[Annotated[float, Ge(0), Le(2)]],
        MaxLen(100),
        Doc("""The set that its EMD is drawn from each round; L1 distance, 0 (IID) to 2(1-1/L) for L labels. Required,
        unless there is a label_mix or a data.partition, from which EMDs follow."""),
    ] = ()
    label_mix: Annotated[ClientLabelMix, Doc("The distribution of the labels of its data, in place of an EMD.")] = (
        ClientLabelMix()
    )
    cost: Annotated[ClientCost, Doc("The cost of a round's work to a client, money.")]
    speed: Annotated[
        Several[Annotated[float, Ge(LEAST_SPEED), Le(LARGEST_SPEED)]],
        MinLen(1),
        MaxLen(100),
        Doc("""The set that a client's speed is drawn from, once for the whole run; 2 computes twice as fast as the
        timeline's seconds_per_sample."""),
    ] = (1.0,)
    download_mbps: Annotated[
        Several[Mbps],
        MaxLen(100),
        Unit("Mbps"),
        Field(exclude_if=lambda it: not it),
        Doc("""The set that a client's bandwidth for models is drawn from, once for the whole run; they travel as long
        as their bytes take. Absent: timeline.download_seconds."""),
    ] = ()
    upload_mbps: Annotated[
        Several[Mbps],
        MaxLen(100),
        Unit("Mbps"),
        Field(exclude_if=lambda it: not it),
        Doc("The same for updates, which are as large as models. Absent: timeline.upload_seconds."),
    ] = ()
    devices: Annotated[
        FilePath | None,
        Field(exclude_if=lambda it: it is None),
        Doc("""CSV file of devices (speed,download_mbps,upload_mbps), of which each client draws one for the whole run,
        in place of the three keys above."""),
    ] = None
    departure_rate: Annotated[
        float,
        Ge(0),
        Lt(1),
        Doc("""Probability that a client that was awarded something leaves during the round; what it has not delivered
        by then is dropped."""),
    ] = 0.0
    availability: Annotated[
        FilePath | None,
        Doc("""CSV file that says in which rounds each client is there (client,from,to), or, where the mode is
        continuous, when (client,from_second,to_second); the others are offline. Absent: all are always there."""),
    ] = None
    presence: Annotated[
        ClientPresence,
        Field(exclude_if=lambda it: it == ClientPresence()),
        Doc("The times that clients stay and are away, in place of a trace, where the mode is continuous."),
    ] = ClientPresence()
    offline_work: Annotated[
        Literal["continues", "lost"],
        Field(exclude_if=lambda it: it == "continues"),
        Doc("""What becomes of the work of a client that goes at an instant: it continues, or is lost and not paid."""),
    ] = "continues"
    behaviour: Annotated[ClientBehaviour, Doc("The clients' behaviour: what they bid and report.")] = ClientBehaviour()
    lasting: Annotated[ClientLasting, Doc("The persistence of a client's data from round to round.")] = ClientLasting()
    response: Annotated[
        ClientResponse,
        Field(exclude_if=lambda it: it == ClientResponse()),
        Doc("The clients' response: how much they do of the work that they were awarded."),
    ] = ClientResponse()
    groups: Annotated[
        Several["ClientGroup"],
        MaxLen(100),
        Field(exclude_if=lambda it: not it),
        Doc("Groups of clients that differ in some of these keys, one [[clients.groups]] table each: phones, servers."),
    ] = ()

    def kinds(self) -> list[tuple[int | None, "Clients"]]:
        """Return the clients of each group, as if there were no others, with the group's place; then those of none."""
        found: list[tuple[int | None, Clients]] = [(i, self._of(it)) for i, it in enumerate(self.groups) if it.count]
        left = self.count - sum(group.count for group in self.groups)
        return [*found, *([(None, self.model_copy(update={"count": left, "groups": ()}))] if left > 0 else ())]

    def _of(self, group: "ClientGroup") -> "Clients":
        own = {key: value for key, value in group if value is not None and key in Clients.model_fields}
        whole = (
            self.cost if group.cost.kind is None else ClientCost(noise=self.cost.noise)
        )  # another kind begins afresh
        own["cost"] = whole.model_copy(update=_given(group.cost))
        own["label_mix"] = self.label_mix.model_copy(update=_given(group.label_mix))
        begun = self.behaviour if group.behaviour.kind is None else ClientBehaviour()
        own["behaviour"] = begun.model_copy(update=_given(group.behaviour))
        return self.model_copy(update={**own, "groups": ()})

    def behaviours(self) -> list["NamedPlugin"]:
        """Return the behaviour of each of the ``kinds``; those without one of their own share that of ``[clients]``."""
        return [
            NamedPlugin(
                BEHAVIOURS,
                it.behaviour.kind,
                it.behaviour.options,
                ("clients", "behaviour")
                if i is None or not _given(self.groups[i].behaviour)
                else ("clients", "groups", i, "behaviour"),
                "kind",
            )
            for i, it in self.kinds()
        ]

    @property
    def truthful(self) -> bool:
        """Whether all clients bid their costs, report what they hold and do all of the work, as in the paper."""
        return self.bids_costs and not self.responds

    @property
    def bids_costs(self) -> bool:
        """Whether all clients bid their costs and report what they hold."""
        return all(it.name == TRUTHFUL for it in self.behaviours())

    @property
    def responds(self) -> bool:
        """Whether clients answer how much they do of the work that they were awarded."""
        return self.response.kind is not None

    def answer(self) -> Iterator["NamedPlugin"]:
        """Yield the response, if there is one."""
        if self.response.kind is not None:
            table: Path = ("clients", "response")
            yield NamedPlugin(RESPONSES, self.response.kind, self.response.options, table, "kind")

    def group_names(self) -> list[str]:
        """Return the name of the group that each client is of; empty for one of none."""
        named = [group.name for group in self.groups for _ in range(group.count)]
        return named + [""] * (self.count - len(named))

    @property
    def all_cores(self) -> int:
        """The cores of all clients together."""
        return sum(min(it.cores, self.cores) * it.count for _, it in self.kinds())

    def emds(self, labels: int) -> tuple[float, ...]:
        """Return the EMDs that data sets with so many labels are to have; without a list, the least and the largest."""
        return self.emd or (0.0, largest_emd(labels))


if TYPE_CHECKING:  # it cannot follow what is made while the program runs
    _PartOfClients = Clients
else:
    _PartOfLabelMix = create_model(
        "_PartOfLabelMix", __base__=TomlTable, **_part(ClientLabelMix, {"dirichlet": None}, "[clients]", "label_mix.")
    )
    _PartOfCost = create_model(
        "_PartOfCost",
        __base__=TomlTable,
        **_part(ClientCost, dict.fromkeys(("kind", "per_sample", "per_emd", "unit", "options")), "[clients]", "cost."),
    )
    _PartOfBehaviour = create_model(
        "_PartOfBehaviour",
        __base__=TomlTable,
        **_part(ClientBehaviour, {"kind": None, "options": None}, "[clients]", "behaviour."),
    )
    _OF_GROUPS = dict.fromkeys(
        ("cores", "data_size", "emd", "label_mix", "cost", "speed", "download_mbps", "upload_mbps", "departure_rate",
         "behaviour")
    )  # fmt: skip
    _OF_GROUPS |= {"label_mix": _PartOfLabelMix, "cost": _PartOfCost, "behaviour": _PartOfBehaviour}
    _PartOfClients = create_model(
        "_PartOfClients",
        __base__=TomlTable,
        name=(str, ...),
        count=(int, ...),
        **_part(Clients, _OF_GROUPS, "[clients]"),
    )


class ClientGroup(_PartOfClients):
    """Clients that differ from the others; the keys that are absent are as in ``[clients]``."""

    name: Annotated[Name, Doc("Unique among the groups.")]
    count: Annotated[
        int,
        Ge(0),
        Le(1_000_000),
        Doc("""Clients of the group. They are numbered group by group, from 0; those of no group come last, and
        clients.count is how many there are in all."""),
    ]
    services: Annotated[
        Several[Name] | None,
        MinLen(1),
        MaxLen(1_000),
        Field(json_schema_extra={"absent": "all"}),
        Doc("""Names of the services that its clients can serve, or of streams; the others cannot offer them anything.
        Absent: all."""),
    ] = None
    label_noise: Annotated[
        Share,
        Field(exclude_if=lambda it: not it),
        Doc("""Share of its clients' images whose labels are wrong, each of the other labels equally often. Services do
        not see it: EMD and DQI are those of the true labels. This and the three keys below are in docs/conduct.md, and
        need models that are really trained."""),
    ] = 0.0
    label_flip: Annotated[
        Share,
        Field(exclude_if=lambda it: not it),
        Doc("Share of its clients' images that they train on with label L - 1 - l in place of l: poisoned data."),
    ] = 0.0
    free_ride: Annotated[
        Literal["old", "random"] | None,
        Field(json_schema_extra={"absent": "the update that they trained"}),
        Doc("""What its clients send in place of an update that they trained: old, the model that they were given;
        random, random numbers of the size of an update."""),
    ] = None
    update_scale: Annotated[
        float,
        Ge(-1e6),
        Le(1e6),
        Field(exclude_if=lambda it: it == 1),
        Doc("What its clients multiply their update by before they send it: poisoned models; below 0 it points back."),
    ] = 1.0

    @property
    def conduct(self) -> Conduct | None:
        """How the training of its clients departs from honest work; None: in nothing."""
        sent = self.free_ride or "trained"
        found = Conduct(None, self.label_noise, self.label_flip, sent, update_scale=self.update_scale)
        return None if found == HONEST else found


PartitionRule = Annotated[str, Field(min_length=1, max_length=4_096, pattern=r"^[^\x00]*$")]


class DataOverride(TomlTable):
    """The keys that differ for one data set; those that are absent are as in ``[data]``."""

    partition: Annotated[PartitionRule | None, Doc("As data.partition, for this data set.")] = None


class Data(TomlTable):
    """The training images that each client owns, in place of images that are drawn from all in each round."""

    partition: Annotated[
        PartitionRule | None,
        Doc("""How training images are divided among the clients, for the whole run: iid, dirichlet(CONCENTRATION),
        shards(NUMBER) of each client, or a CSV (client,image) or JSON file. In each round a client has as many of its
        own as data_size says, or all. Absent: images belong to nobody."""),
    ] = None
    by_dataset: Annotated[
        dict[DatasetName, DataOverride], Doc("Tables [data.by_dataset.NAME]: what differs for one data set.")
    ] = {}

    @property
    def given(self) -> bool:
        """Whether clients own images."""
        own = [it.partition for it in self.by_dataset.values()]
        return any(it is not None for it in (self.partition, *own))

    def partition_of(self, dataset: str) -> str | None:
        """Return how the images of a data set are divided, as the file says it."""
        override = self.by_dataset.get(dataset)
        return self.partition if override is None or override.partition is None else override.partition


class Market(TomlTable):
    """The rules of the market."""

    mechanism: Annotated[
        MechanismName,
        Doc("""The rule by which clients serve, and at what price: pay-as-offered (the K highest payments win, and
        each pays what it offered; the paper's), uniform-price, posted-price, proportional-share, iterated, vcg,
        fair-queue, score-auction, scheduler, or a plug-in."""),
    ] = DEFAULT
    options: Annotated[Options, Doc("Settings of the mechanism, as the mechanism documents them.")] = {}
    bids: Annotated[
        Literal["public", "own"],
        Doc("""The bids that services see: public, all that clients ask of any service, as in the paper; own, what
        they ask of the service itself."""),
    ] = "public"
    dqi: Annotated[
        Literal["value", "rank"],
        Doc("""The form in which services see a client's data quality: value, the DQI; rank, its rank among all
        clients of the round, 0 for the lowest and 1 for the highest."""),
    ] = "value"
    dqi_noise: Annotated[
        Share,
        Doc("""The most by which the DQI that services see may be off: to each is added a number that is drawn
        uniformly between plus and minus this part of the range of the DQI that clients can have. A rank is that of
        the noisy values."""),
    ] = 0.0
    data: Annotated[
        Literal["hidden", "public"],
        Field(exclude_if=lambda it: it == "hidden"),
        Doc("""Whether services see the data sizes and EMDs that clients report: hidden, as in the paper, or public, as
        where clients report them with their bids. Then a service can value clients as a set."""),
    ] = "hidden"
    contract_rounds: Annotated[
        Count,
        Unit("rounds"),
        Field(exclude_if=lambda it: it == 1),
        Doc("""For how many rounds a service hires a client that has served it, at the price of the first; nobody else
        can have the client meanwhile. 1: for that round alone, as in the paper; docs/contracts.md."""),
    ] = 1
    cancel_fee: Annotated[
        Share,
        AfterValidator(six_decimals),
        Field(exclude_if=lambda it: it == 0),
        Doc("""The share of what its contracts would still have cost that a service pays to the clients when it leaves
        before they are over."""),
    ] = 0.0

    impressions: Annotated[
        Literal["together", "sequential"],
        Field(exclude_if=lambda it: it == "together"),
        Doc("""Whether the clients of a round are offered to services all together, as in the paper, or one after
        another in an order that is drawn, as in auction-based federated learning; docs/market.md."""),
    ] = "together"

    @property
    def sequential(self) -> bool:
        """Whether clients come one after another."""
        return self.impressions == "sequential"

    @property
    def rule(self) -> str:
        """What a round is cleared by, in words: the mechanism's name alone where all else is as in the paper."""
        several = f" with contracts over {self.contract_rounds} rounds" if self.contract_rounds > 1 else ""
        return f"{self.mechanism}{several}{IN_TURN if self.sequential else ''}"


def _regime_keys(absent: str) -> dict[str, Any]:
    """Return the fields of ``Regime`` as keys of a table, with the words for one that is absent."""
    keys: dict[str, Any] = {}
    for field in fields(Regime):
        kind, *notes = get_args(field.type)
        extra = Field(default=None, json_schema_extra={"absent": absent.format(field.default)})
        keys[field.name] = Annotated[(ModelName if kind is str else kind) | None, *notes, extra]
    return keys


if TYPE_CHECKING:  # it cannot follow what is made while the program runs; ``Scenario.training_for`` is typed
    _RegimeTable = TomlTable
    TrainingOverride = TomlTable
    BackendName = str
else:
    _RegimeTable = create_model("_RegimeTable", __base__=TomlTable, **_regime_keys("as fitted, else {}"))
    TrainingOverride = create_model("TrainingOverride", __base__=TomlTable, **_regime_keys("as in [training]"))
    BackendName = Literal[tuple(BACKENDS)]


class Aggregation(TomlTable):
    """The rule by which each service makes a new model of its clients' updates."""

    kind: Annotated[
        AggregatorName,
        Doc("""fedavg (the paper's), fedprox, median, trimmed-mean, krum, norm-clip, or a plug-in;
        docs/aggregation.md. All but fedavg need models that are really trained."""),
    ] = FEDAVG
    options: Annotated[
        Options, Field(exclude_if=lambda it: not it), Doc("Settings of the rule, as the rule documents them.")
    ] = {}

    def __str__(self) -> str:
        return ", ".join([self.kind, *(f"{name} {value}" for name, value in self.options.items())])

    @property
    def given(self) -> bool:
        """Whether it is another than the paper's."""
        return self != Aggregation()

    def plugin(self) -> "NamedPlugin":
        """Return it as a plug-in."""
        return NamedPlugin(AGGREGATORS, self.kind, self.options, ("training", "aggregation"), "kind")


class Training(_RegimeTable):
    """Local training and evaluation: the keys of a regime (``fl.training.regime``), and these.

    A key of the regime that is absent is as the data set's fits were measured; see ``scenarios.file.regimes``.
    """

    backend: Annotated[
        BackendName, Doc("; ".join(f"{backend.name}: {backend.summary}" for backend in BACKENDS.values()) + ".")
    ] = next(iter(BACKENDS))
    eval_samples: Annotated[
        int | None,
        Ge(1),
        Unit("images"),
        Doc("""The most images that each evaluation looks at, of the validation images and of the test images; absent:
        all of them."""),
    ] = None
    validation: Annotated[
        float,
        Ge(0),
        Le(LARGEST_SHARE),
        Doc("""Share of the training images that no client gets, on which accuracy is measured as the run goes
        (rewards, exits, what policies see); the test images are for reports. 0: accuracy is measured on the test
        images. Without meaning where nothing is trained."""),
    ] = 0.1
    device: Annotated[
        Device, Doc("The device on which networks train; only cpu gives the same bytes on every run.")
    ] = "cpu"
    kernel: Annotated[
        Kernel, Doc("Training code: the fused kernel, PyTorch as the reference, or the fastest one that works here.")
    ] = "auto"
    aggregation: Annotated[
        Aggregation,
        Field(exclude_if=lambda it: not it.given),
        Doc("The rule by which each service makes a new model of its clients' updates."),
    ] = Aggregation()
    by_dataset: Annotated[
        dict[DatasetName, TrainingOverride], Doc("Tables [training.by_dataset.NAME]: what differs for one data set.")
    ] = Field(default={})


class Aggregate(TomlTable):
    """The rule by which each service decides when it makes a new model of the updates that have arrived."""

    kind: Annotated[
        TriggerName,
        Doc("""wait-for-all (the paper's), fedasync, fedbuff, semi-async, or a plug-in; docs/continuous.md."""),
    ] = WAIT
    options: Annotated[
        Options, Field(exclude_if=lambda it: not it), Doc("Settings of the rule, as the rule documents them.")
    ] = {}

    def plugin(self, table: Path) -> "NamedPlugin":
        """Return it as the plug-in that a table names."""
        return NamedPlugin(TRIGGERS, self.kind, self.options, table, "kind")


class Timeline(TomlTable):
    """Durations on the simulated clock."""

    mode: Annotated[
        Literal["slots", "continuous"],
        Field(exclude_if=lambda it: it == "slots"),
        Doc("""Whether a round ends with the work that begins in it, as in the paper, or is a period after which
        services decide again while work goes on; docs/continuous.md."""),
    ] = "slots"
    aggregate: Annotated[
        Aggregate,
        Field(exclude_if=lambda it: it == Aggregate()),
        Doc("""The rule by which services decide when to make a new model, where the mode is continuous; a service can
        have its own."""),
    ] = Aggregate()

    seconds_per_sample: Annotated[
        float, Ge(0), Le(1e6), Unit("seconds"), Doc("Computing time of one image in one epoch at speed 1, seconds.")
    ] = 0.001
    upload_seconds: Annotated[
        float, Ge(0), Le(1e9), AfterValidator(six_decimals), Unit("seconds"), Doc("Time to send an update, seconds.")
    ] = 0.5
    download_seconds: Annotated[
        float,
        Ge(0),
        Le(1e9),
        AfterValidator(six_decimals),
        Unit("seconds"),
        Field(exclude_if=lambda it: it == 0),
        Doc("Time to fetch the model before training, seconds."),
    ] = 0.0
    jitter: Annotated[
        float,
        Ge(0),
        Le(10),
        Field(exclude_if=lambda it: it == 0),
        Doc("""Spread of computing times: each job's is multiplied by a log-normal number, the standard deviation of
        whose logarithm this is."""),
    ] = 0.0
    slot: Annotated[
        Span | None,
        Unit("seconds"),
        Doc("""Length of a round, seconds; absent: each lasts until its last job is done (the paper's "long enough").
        Where the mode is continuous, it is the time between decisions, at most, and must be given."""),
    ] = None
    decide: Annotated[
        list[Literal["free", "model"]],
        Field(exclude_if=lambda it: not it),
        Doc("""The events after which services decide again before the slot ends, where the mode is continuous: "free",
        a core of a client has come free; "model", a service has made a model."""),
    ] = []
    slots: Annotated[
        Count | None,
        Field(exclude_if=lambda it: it is None),
        Doc("""With so many slots the run is over, though fewer rounds were played, where events end rounds (decide);
        absent: with the last round."""),
    ] = None
    deadline: Annotated[
        Span | None,
        Unit("seconds"),
        Doc("""Seconds after the awards by which an update must have arrived, at most the slot unless the mode is
        continuous; absent: none."""),
    ] = None

    @property
    def period(self) -> float | None:
        """The seconds between two decisions, where work may outlast the round in which it begins."""
        return self.slot if self.continuous else None

    @property
    def end(self) -> float | None:
        """The seconds after which a round is over, and all of its work."""
        return None if self.continuous else self.slot

    @property
    def continuous(self) -> bool:
        """Whether work may outlast the round in which it begins."""
        return self.mode == "continuous"


class Service(TomlTable):
    """A federated-learning service: it wants clients, and has a budget for them."""

    name: Annotated[Name, Doc("Unique in the scenario.")]
    dataset: Annotated[
        DatasetName,
        Doc("""Data set that it learns; `flmarket datasets` lists them. Or the path of a folder of images or of an
        .npz: docs/data.md."""),
    ]
    budget: Annotated[Money, Unit("money per round"), Doc("The most that it can offer in one round (B_m), money.")]
    total_budget: Annotated[
        Money | None,
        Unit("money"),
        Doc("""The most that it can pay in the whole run, money: a round's offers are within its budget and within
        what is left of this. Absent: no such limit."""),
    ] = None
    budget_cap: Annotated[
        Money | None,
        Unit("money"),
        Field(exclude_if=lambda it: it is None),
        Doc("""What it does not spend of its budget is there in the next round, up to this much in all, money. Absent:
        it lapses, as in the paper."""),
    ] = None
    arrival: Annotated[
        Count,
        Doc("The first round in which it takes part; before that it has no budget and sees nothing."),
    ] = 1
    patience: Annotated[
        Span | None,
        Unit("seconds"),
        Field(exclude_if=lambda it: it is None),
        Doc("""Seconds after its arrival by which it must have met its target, at least a slot. It leaves with the slot
        in which they are over; what it meets until that ends counts. Absent: it stays until it meets its target."""),
    ] = None
    target_accuracy: Annotated[float, Gt(0), Le(1), Doc("Accuracy at which it leaves, as a fraction: 97 % is 0.97.")]
    reward_base: Annotated[float, Gt(1), Le(1e9), Doc("Omega_m: its reward in a round is Omega_m ^ accuracy.")]
    policy: Annotated[PolicyName, Doc("The policy that decides for it; `flmarket policies` lists them.")]
    checkpoint: Annotated[
        FilePath | None, Doc("File with what its policy has learned; absent: the policy starts as it is.")
    ] = None
    policy_options: Annotated[Options, Doc("Settings of its policy, as the policy documents them.")] = {}
    model_bytes: Annotated[
        int | None,
        Ge(1),
        Le(1_000_000_000),
        Unit("bytes"),
        Field(exclude_if=lambda it: it is None),
        Doc("""Bytes of its model, and of an update, where clients have bandwidths. Absent: 4 for each parameter, where
        the model is cnn, mlp or logistic and the data set comes with flmarket; else required."""),
    ] = None
    aggregate: Annotated[
        Aggregate | None,
        Field(exclude_if=lambda it: it is None),
        Doc("Its own rule of when to make a new model; absent: timeline.aggregate."),
    ] = None


class Stream(Service):
    """Services that differ in nothing but when they arrive; all keys of a service are theirs, too.

    Each takes part from the first round on that begins after its arrival.
    """

    name: Annotated[Name, Doc("Its services are NAME-1, NAME-2 and so on.")]
    arrival: Annotated[
        Count, Doc("The round with whose beginning the stream begins: its seconds are counted from it.")
    ] = 1
    count: Annotated[int, Ge(1), Le(MOST_SERVICES), Doc("Services of the stream.")]
    rate: Annotated[
        float | None,
        Ge(LEAST_RATE),
        Le(1e6),
        Unit("services per second"),
        Doc("""Mean number of services that arrive in a second, where they arrive at random (a Poisson process): their
        instants are drawn for each seed. It or times must be given."""),
    ] = None
    times: Annotated[
        Several[Annotated[float, Ge(0), Le(1e12), AfterValidator(six_decimals)]],
        MaxLen(MOST_SERVICES),
        Unit("seconds"),
        Doc("The seconds at which its services arrive, one for each, none before the one ahead of it."),
    ] = ()

    def services(self) -> Iterator[Service]:
        """Yield its services, as ``[[services]]`` would have them."""
        own = {key: getattr(self, key) for key in Service.model_fields}
        for place in range(1, self.count + 1):
            yield Service.model_construct(**{**own, "name": f"{self.name}-{place}"})


def _with_those_of_streams(services: tuple[Service, ...], info: ValidationInfo) -> tuple[Service, ...]:
    """Return the services of the file, then those of its streams."""
    streams = info.data.get("streams")  # None where something is wrong with them
    if not services and streams == ():
        raise PydanticKnownError("too_short", {"field_type": "Tuple", "min_length": 1, "actual_length": 0})
    return (*services, *(service for stream in streams or () for service in stream.services()))


class Intervention(TomlTable):
    """A change from outside in the middle of a run."""

    round: Annotated[Count, Doc("The first round that it applies to.")]
    key: Annotated[
        str,
        MaxLen(200),
        Doc("""The key that changes: services.NAME.budget, services.NAME.policy, market.mechanism, clients.cores or
        clients.offline."""),
    ]
    value: Annotated[
        Plain,
        Doc("""The new budget or cores; for clients.offline the list of all clients offline from then on; for a policy
        NAME, NAME:CHECKPOINT or a table with policy, checkpoint and policy_options; for the mechanism NAME or a table
        with mechanism and options. A new policy or mechanism begins fresh."""),
    ]


@dataclass(frozen=True, slots=True)
class NamedPlugin:
    """A plug-in that a table of a scenario names, with its options: a market creates it."""

    registry: Registry[Any]
    name: str
    options: Mapping[str, Any]
    table: Path
    key: str  # of its name; that of its options is ``options``

    def create(self) -> Any:
        """Return it as a new object. Errors as in ``Registry.create``."""
        return self.registry.create(self.name, **self.options)


class Scenario(TomlTable):
    """A scenario: a market, its training, and its competitors."""

    name: Annotated[Name, Doc("Names the folder of its runs.")]
    description: Annotated[str, MaxLen(10_000), Doc("For people.")] = ""
    rounds: Annotated[Count, Doc("Rounds at most (N); the run ends when all services have left.")]
    dqi: Annotated[
        Literal["published", "fitted", "jiao"],
        Doc("""Parameters of the data quality indicator (eq. 6): published as printed in the paper, fitted to
        experiments, or jiao as Jiao et al. have them."""),
    ] = "fitted"
    clients: Annotated[Clients, Doc("The clients.")]
    data: Annotated[
        Data, Field(exclude_if=lambda it: it == Data()), Doc("The training images that each client owns.")
    ] = Data()
    market: Annotated[Market, Doc("The rules of the market.")] = Market()
    training: Annotated[Training, Doc("Local training and evaluation.")] = Training()
    timeline: Annotated[Timeline, Doc("The simulated clock.")] = Timeline()
    streams: Annotated[
        Several[Stream],
        MaxLen(100),
        Field(exclude_if=lambda it: not it),
        Doc(
            "Services that arrive one after another, one [[streams]] table for all that are alike; docs/continuous.md."
        ),
    ] = ()
    services: Annotated[
        Several[Service],
        MaxLen(MOST_SERVICES),
        AfterValidator(_with_those_of_streams),
        Doc("The services, one [[services]] table each; those of streams come behind them."),
    ]
    sweep: Annotated[
        dict[str, Annotated[tuple[Plain, ...], Field(strict=False, min_length=1)]],
        MaxLen(MOST_SWEPT),
        Doc("""Dotted keys (services by name) and the list of values that each takes: every combination is a run of
        its own."""),
    ] = {}

    runs: Annotated[
        Several[Annotated[dict[str, Plain], Field(min_length=1, max_length=MOST_SWEPT)]],
        MaxLen(10_000),
        Doc("""Explicit list of runs, one [[runs]] table each: dotted keys and the value that each has in it; with a
        sweep, each is combined with all its points."""),
    ] = ()

    interventions: Annotated[
        Several[Intervention],
        MaxLen(10_000),
        Doc("Changes from outside in the middle of a run, one [[interventions]] table each."),
    ] = ()

    _seats: Mapping[str, Mapping[str, Any]] = PrivateAttr(default_factory=dict)

    @property
    def seats(self) -> Mapping[str, Mapping[str, Any]]:
        """What overrides of the file say of who plays, by service: ``{"a": {"checkpoint": "mine.safetensors"}}``.

        They come after a policy for all services; see ``scenarios.file.policy_choice``.
        """
        return self._seats

    def with_seats(self, seats: Mapping[str, Mapping[str, Any]]) -> "Scenario":
        """Return the same scenario with other ``seats``."""
        copy = self.model_copy()
        copy._seats = seats
        return copy

    @model_validator(mode="before")
    @classmethod
    def _all_in_streams(cls, data: Any) -> Any:
        """A file may have streams alone."""
        return {"services": (), **data} if isinstance(data, Mapping) and data.get("streams") else data

    @field_serializer("services", mode="wrap")
    def _without_those_of_streams(self, services: Sequence[Service], handler: SerializerFunctionWrapHandler) -> Any:
        return handler(services[: self.listed])

    @property
    def listed(self) -> int:
        """How many of the services are tables of the file; the others are of streams."""
        return len(self.services) - sum(stream.count for stream in self.streams)

    def named(self, names: Iterable[str]) -> list[str]:
        """Return services by name; the name of a stream stands for all of its services."""
        streams = {stream.name: [service.name for service in stream.services()] for stream in self.streams}
        return [service for name in names for service in streams.get(name, [name])]

    def table_of(self, path: Path) -> Path:
        """Return where the file has what stands at a path: the table of the stream in place of that of its service."""
        if path[:1] != ("services",) or len(path) < 2 or not isinstance(path[1], int) or path[1] < self.listed:
            return path
        of = [i for i, stream in enumerate(self.streams) for _ in range(stream.count)]
        return ("streams", of[path[1] - self.listed], *path[2:])

    def plugins(self) -> Iterator[NamedPlugin]:
        """Yield the plug-ins that play for no service."""
        market, behaviour = self.market, self.clients.behaviour
        shared: Path = ("clients", "behaviour")
        yield self.clients.cost.plugin()
        for i, clients in self.clients.kinds():
            if i is not None:
                yield clients.cost.plugin(("clients", "groups", i, "cost"))
        yield NamedPlugin(MECHANISMS, market.mechanism, market.options, ("market",), "mechanism")
        yield NamedPlugin(BEHAVIOURS, behaviour.kind, behaviour.options, shared, "kind")
        yield from (own for own in self.clients.behaviours() if own.table != shared)
        yield from self.clients.answer()
        yield self.training.aggregation.plugin()
        yield from self.triggers()

    def cleared_by(self, rules: Market) -> str:
        """Return what rounds under such rules are cleared by, in words: see ``Market.rule``."""
        return f"{rules.rule}{STANDING if self.timeline.continuous else ''}"

    @property
    def logged(self) -> Mapping[str, bool]:
        """What decides which tables its runs have, as ``scenarios.logs.columns.tables_of`` takes it."""
        clients = self.clients
        return {"truthful": clients.truthful, "respond": clients.responds, "models": self.timeline.continuous}

    @property
    def outlasting(self) -> str:
        """What goes on after the round in which it begins, in words; empty where nothing does."""
        if self.timeline.continuous:
            return "work outlasts them (timeline.mode)"
        return "services hire for several (contract_rounds)" if self.market.contract_rounds > 1 else ""

    @property
    def once(self) -> bool:
        """Whether what clients a service had to choose from follows from its round alone."""
        return not self.outlasting and not self.market.sequential

    def triggers(self) -> Sequence[NamedPlugin]:
        """Return the rule by which each service decides when it makes a new model; none where each round ends it."""
        if not self.timeline.continuous:
            return ()
        shared = self.timeline.aggregate.plugin(("timeline", "aggregate"))
        return [
            it.aggregate.plugin(("services", i, "aggregate")) if it.aggregate else shared
            for i, it in enumerate(self.services)
        ]

    def service(self, name: str) -> Service:
        """Return the service of that name; KeyError where there is none."""
        for service in self.services:
            if service.name == name:
                return service
        raise KeyError(name)

    def model_bytes(self, service: Service) -> int | None:
        """Return the bytes of a service's model; None where its parameters are neither given nor known."""
        if service.model_bytes is not None or service.dataset not in DATASETS.builtin:
            return service.model_bytes
        data = info(service.dataset)
        count = parameter_count(self.training_for(service.dataset).model, data.labels, data.shape)
        return None if count is None else 4 * count

    def training_for(self, dataset: str) -> Regime:
        """Return how clients train a data set; see ``scenarios.file.regimes``."""
        return self.regime_of(dataset).regime

    @property
    def split(self) -> bool:
        """Whether accuracy is measured on images that are held out, and on test images as well."""
        return BACKENDS[self.training.backend].trains and self.training.validation > 0

    def regime_of(self, dataset: str) -> Chosen:
        """Return how clients train a data set, and why."""
        override = self.training.by_dataset.get(dataset)
        tables = (override, self.training) if override else (self.training,)
        return choose(dataset, [table.model_dump(include=set(KEYS)) for table in tables])
