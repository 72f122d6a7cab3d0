"""The clients' tables of the scenario file: every key, its unit, its limits and its default."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from des.behaviour import TRUTHFUL
from fl.dirichlet import LEAST, MOST
from fl.quality import largest_emd
from scenarios.file.tables import Table, plain


class Cost(Table):
    """What a data set costs a client: ``per_sample * D - per_emd * EMD``, with noise. A truthful client bids that."""

    per_sample: float = Field(
        ge=0, le=1_000_000, description="Cost of each image (D), money.", json_schema_extra={"unit": "money per image"}
    )
    per_emd: float = Field(
        ge=-1_000_000,
        le=1_000_000,
        description="Money taken off for each unit of EMD; the cost must stay at or above 0.",
        json_schema_extra={"unit": "money per unit of EMD"},
    )
    noise: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="In each round, all that a client's work costs is multiplied by a number of its own, drawn "
        "uniformly between 1 - noise and 1 + noise. 0: costs tell the data, as in the paper.",
    )


class ClientBehaviour(Table):
    """How clients behave: what they bid, given their costs, and what they report of their data."""

    kind: str = Field(
        default=TRUTHFUL,
        description="truthful (clients bid their costs, as in the paper), markup, adaptive, misreport, ring, or a "
        "plug-in; docs/behaviours.md.",
    )
    options: Annotated[dict[str, Any], AfterValidator(plain)] = Field(
        default_factory=dict, description="Settings of the behaviour, as the behaviour documents them."
    )


class ClientLabelMix(Table):
    """How the labels of a client's data are drawn, in place of an EMD."""

    dirichlet: float | None = Field(
        default=None,
        ge=LEAST,
        le=MOST,
        description="Concentration of the Dirichlet distribution that each label mix is drawn from, in place of an "
        "EMD from a list: 0.1 gives clients one or two labels, 100 nearly all alike. Absent: EMDs are those of emd.",
    )


class ClientLasting(Table):
    """How far a client's data lasts from round to round."""

    persistence: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Probability that a round keeps a client's lasting data size, EMD and label mix for a service; "
        "else they are drawn anew for that round. 0: always anew, as in the paper; 1: always the same.",
    )
    drift: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Probability, in each round, that a client's lasting sizes, EMDs and label mixes are drawn anew, "
        "and last from then on.",
    )


class Clients(Table):
    """The clients, and how their data is drawn anew in each round."""

    count: int = Field(ge=1, le=100_000, description="Clients in the market (C).")
    cores: int = Field(ge=1, le=1_024, description="Services that a client can serve at once (K).")
    data_size: Annotated[tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...], Field(strict=False)] = Field(
        min_length=1,
        max_length=100,
        description="The set that a client's data size for a service (D, images) is drawn from each round.",
        json_schema_extra={"unit": "images"},
    )
    emd: Annotated[tuple[Annotated[float, Field(ge=0, le=2)], ...], Field(strict=False)] = Field(
        default=(),
        max_length=100,
        description="The set that its EMD is drawn from each round; L1 distance, 0 (IID) to 2(1-1/L) for L labels. "
        "Required, unless there is a label_mix, from which EMDs follow.",
    )
    label_mix: ClientLabelMix = Field(
        default_factory=ClientLabelMix, description="How the labels of its data are drawn, in place of an EMD."
    )
    cost: Cost = Field(description="What a data set costs a client: per_sample * D - per_emd * EMD, money.")
    speed: Annotated[tuple[Annotated[float, Field(ge=1e-6, le=1e6)], ...], Field(strict=False)] = Field(
        default=(1.0,),
        min_length=1,
        max_length=100,
        description="The set that a client's speed is drawn from, once for the whole run; "
        "2 computes twice as fast as the timeline's seconds_per_sample.",
    )
    departure_rate: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Probability that a client that was awarded something leaves during the round; "
        "what it has not delivered by then is dropped.",
    )
    availability: str | None = Field(
        default=None,
        min_length=1,
        max_length=4_096,
        pattern=r"^[^\x00]*$",
        description="CSV file that says in which rounds each client is there (client,from,to); the others are offline. "
        "Absent: all are there in all rounds.",
    )
    behaviour: ClientBehaviour = Field(
        default_factory=ClientBehaviour, description="How clients behave: what they bid and report."
    )
    lasting: ClientLasting = Field(
        default_factory=ClientLasting, description="How far a client's data lasts from round to round."
    )

    def emds(self, labels: int) -> tuple[float, ...]:
        """Return the EMDs that data sets with so many labels are to have; of a label mix, the least and the largest."""
        return self.emd if self.label_mix.dirichlet is None else (0.0, largest_emd(labels))
