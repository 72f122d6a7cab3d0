"""The columns of rounds.csv, offers.csv, events.csv, clients.csv, responses.csv and models.csv, each declared once.

Whatever writes, reads, exports, judges, verifies or documents the logs takes names, order, types and units from here.
The values are those of the records in ``des.log_records``, in the same order: docs/logs.md shows how a column is added.
"""

import os
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path

from des.log_records import Kind, Outcome
from des.observation import Status
from scenarios.logs.table import (
    ACCURACY,
    INTEGER,
    MEAN_MONEY,
    MONEY,
    NUMBER,
    QUANTITY,
    TIME,
    WORD,
    Column,
    Table,
    one_of,
)

RERUN = "--rerun"  # the ``rule`` of a column that no rule can re-derive; playing the run again can

FREE = {
    "`client` and `payment` in offers.csv": "the policy chooses whom it wants and what it offers; the rules hold them "
    "against the world, the budget, the clearing and the other tables",
    "the order of a service's offers in offers.csv": "the policy chooses it; that of awarded offers is also in "
    "events.csv, that of offers that were outbid is not",
    "`accuracy` in rounds.csv, where networks are trained": "training yields it; the rules hold it against the number "
    "of images that it is measured on, the status, the reward and events.csv. The surrogate's accuracies are computed "
    "again",
    "`test_accuracy` in rounds.csv": "training yields it, and nothing follows from it; the rules hold it against the "
    "number of test images, and it stays as it is where no client serves",
    "scenario.toml, with `hashed`, the hash, the folder and all tables": "these are then the files of another run that "
    "could have been",
}
"""What a policy or training decides, or the scenario itself, so that the rules cannot derive it: changed in all its
places at once, it is not found without ``--rerun``."""

SECONDS = "simulated seconds"
NOBODY = "no client served"
OUTBID = "the offer was outbid"
UNSERVED = "the offer was not served"

AMOUNTS = {
    Kind.BID: Column("amount", MONEY, "lowest bid to the service", "world"),
    Kind.DECISION: Column("amount", MONEY, "sum of the payments offered", "timeline"),
    Kind.AWARD: Column("amount", MONEY, "payment offered for the core", "timeline"),
    Kind.AGGREGATE: Column("amount", INTEGER, "images that the averaged updates were trained on", "timeline", "images"),
    Kind.EVALUATE: Column("amount", ACCURACY, "`accuracy` of the new global model", "timeline"),
    Kind.PAY: Column("amount", MONEY, "price that the client is paid", "timeline"),
    Kind.EXIT: Column("amount", ACCURACY, "`accuracy` with which the service leaves", "timeline"),
    Kind.CANCEL: Column("amount", MONEY, "fee that the client is paid for the end of its contract", "timeline"),
}
"""The meaning of ``amount`` in events.csv, by event; other events have none."""

ROUNDS = Table(
    "rounds",
    "one row for each round and service, including services that have left, or have not arrived",
    (
        Column("round", INTEGER, "the round, from 1", "shape"),
        Column(
            "sim_time",
            TIME,
            "simulated time at which the round ended; work that outlasts rounds may go on after the last one",
            "timeline",
            SECONDS,
        ),
        Column("service", WORD, "name of the service", "shape"),
        Column("dataset", WORD, "data set that the service learns", "scenario"),
        Column("policy", WORD, "policy that decides for the service", "scenario"),
        Column("status", one_of(Status), "where the service stands at the end of the round", "progress"),
        Column(
            "accuracy",
            ACCURACY,
            "accuracy of the service's global model after the round: on validation images, or on test images where no "
            "others are held out",
            "accuracies",
        ),
        Column("target_accuracy", ACCURACY, "accuracy at which the service leaves", "scenario"),
        Column(
            "reward",
            NUMBER,
            "Omega^accuracy; Omega^target from the round in which the target is met; 0 before arrival",
            "accuracies",
        ),
        Column("budget", MONEY, "the most that the service may offer in this round", "scenario"),
        Column("offered", MONEY, "sum of the payments offered", "totals"),
        Column("spent", MONEY, "sum of what served clients were paid, and of `cancel` fees", "totals"),
        Column("wanted", INTEGER, "offers that the service made", "totals", "offers"),
        Column("served", INTEGER, "offers that were served: the client trained and was paid", "totals", "offers"),
        Column("refused", INTEGER, "offers that were outbid, dropped or declined", "totals", "offers"),
        Column("samples", INTEGER, "images that served clients trained on, as they say", "totals", "images", NOBODY),
        Column("mean_emd", NUMBER, "mean EMD of served clients' data (eq. 1)", "totals", "", NOBODY),
        Column("mean_dqi", NUMBER, "mean DQI of served clients' data (eq. 6)", "totals", "", NOBODY),
        Column("mean_bid", MEAN_MONEY, "mean bid of served clients", "totals", "", NOBODY),
        Column("mean_payment", MEAN_MONEY, "mean of what served clients were paid", "totals", "", NOBODY),
        Column("makespan", TIME, "time from served clients' first start to last end", "totals", SECONDS, NOBODY),
        Column(
            "test_accuracy",
            ACCURACY,
            "accuracy of the same model on test images, for reports; `accuracy` again where no images are held out",
            RERUN,
        ),
    ),
    lambda report: ((report.round, report.end, *service) for service in report.services),
)

OFFERS = Table(
    "offers",
    "one row for each offer, by service, in the order in which the service chose; those of contracts last",
    (
        Column("round", INTEGER, "the round, from 1", "totals"),
        Column("service", WORD, "service that makes the offer", "totals"),
        Column("client", INTEGER, "index of the client, from 0", "timeline"),
        Column("data_size", INTEGER, "D, images that the client has for the service in this round", "world", "images"),
        Column("emd", NUMBER, "realised EMD of these images (eq. 1)", "world"),
        Column("dqi", NUMBER, "DQI of these images (eq. 6)", "world"),
        Column("bid", MONEY, "what the client asks", "world"),
        Column("payment", MONEY, "what the service offers, at least the bid (eq. 5)", "payments"),
        Column(
            "paid",
            MONEY,
            "what the client is paid: at most the payment; at least the bid, for the part that it promised",
            "payments",
            "",
            UNSERVED,
        ),
        Column("outcome", one_of(Outcome), "what became of the offer", "cores"),
        Column("core", INTEGER, "core of the client, 0 to K - 1", "cores", "", OUTBID),
        Column("start", TIME, "simulated time at which the client began to train", "timeline", SECONDS, OUTBID),
        Column("end", TIME, "simulated time at which its update arrived or was cut off", "timeline", SECONDS, OUTBID),
    ),
    attrgetter("offers"),
)

EVENTS = Table(
    "events",
    "one row for each event, in the order of simulated time",
    (
        Column("round", INTEGER, "the round, from 1", "timeline"),
        Column("sim_time", TIME, "simulated time of the event", "timeline", SECONDS),
        Column("event", one_of(Kind), "what happened", "timeline"),
        Column("service", WORD, "service that it concerns", "timeline", "", "it is a `refresh`"),
        Column("client", INTEGER, "client that it concerns", "timeline", "", "it concerns no single client"),
        Column("core", INTEGER, "core of the client", "timeline", "", "it concerns no core"),
        Column("amount", NUMBER, "depends on the event", "timeline", "", "the event has none", ("event", AMOUNTS)),
    ),
    attrgetter("events"),
)

CLIENTS = Table(
    "clients",
    "one row for each offer, in the order of offers.csv: what it is to the client; only where clients are not "
    "truthful, or respond",
    (
        Column("round", INTEGER, "the round, from 1", "interests"),
        Column("service", WORD, "service that makes the offer", "interests"),
        Column("client", INTEGER, "index of the client, from 0", "interests"),
        Column("data_size", INTEGER, "D, images that the client holds and trains on", "interests", "images"),
        Column("reported_size", INTEGER, "D as the client reports it, as in offers.csv", "interests", "images"),
        Column("emd", NUMBER, "realised EMD of the images that it holds", "interests"),
        Column("reported_emd", NUMBER, "EMD as the client reports it, as in offers.csv", "interests"),
        Column("cost", MONEY, "what the work costs the client: what it does of it, if it was awarded it", "interests"),
        Column("bid", MONEY, "what it asks, as in offers.csv", "interests"),
        Column("paid", MONEY, "what it is paid, as in offers.csv", "interests", "", UNSERVED),
        Column("profit", MONEY, "what it is paid, less the cost", "interests", "", UNSERVED),
    ),
    lambda report: report.clients or (),
)

RESPONSES = Table(
    "responses",
    "one row for each award, in the order of offers.csv: what the client answered; only where clients respond",
    (
        Column("round", INTEGER, "the round, from 1", "responses"),
        Column("service", WORD, "service that was awarded the client's work", "responses"),
        Column("client", INTEGER, "index of the client, from 0", "responses"),
        Column("promised", QUANTITY, "the part of the work that the client promises, 0 if it declines", "cores"),
        Column("done", QUANTITY, "the part that it does", "cores"),
    ),
    attrgetter("responses"),
)

MODELS = Table(
    "models",
    "one row for each model that a service made, in the order of simulated time; only where work outlasts rounds",
    (
        Column("round", INTEGER, "the round in which it was made, from 1", "work"),
        Column("sim_time", TIME, "simulated time at which it was made", "work", SECONDS),
        Column("service", WORD, "service that made it", "work"),
        Column("model", INTEGER, "its number among the service's models, from 1", "work"),
        Column("updates", INTEGER, "updates that went into it", "work"),
        Column(
            "mean_staleness",
            NUMBER,
            "their mean staleness: the models that the service made between handing out the model that the client "
            "began with and this one",
            "work",
            "models",
        ),
        Column("max_staleness", INTEGER, "the largest staleness among them", "work", "models"),
        Column("at_work", INTEGER, "clients still at work for the service", "work", "clients"),
    ),
    attrgetter("models"),
)

TABLES = {table.name: table for table in (ROUNDS, OFFERS, EVENTS)}
"""The tables that every run has, by name."""

ALL_TABLES = {**TABLES, CLIENTS.name: CLIENTS, RESPONSES.name: RESPONSES, MODELS.name: MODELS}  # all tables by name


def tables_of(*, truthful: bool, respond: bool, models: bool) -> Mapping[str, Table]:
    """Return the tables that a run has, by name.

    That hangs on whether its clients are truthful, whether they respond, and whether models are of no round.
    """
    absent = {CLIENTS.name: truthful, RESPONSES.name: not respond, MODELS.name: not models}
    return {name: table for name, table in ALL_TABLES.items() if not absent.get(name)}


def tables_in(directory: Path) -> Mapping[str, Table]:
    """Return the tables that a run's directory has, by name: those that some runs lack are there or not."""
    there = (os.path.lexists(it.path(directory)) for it in (CLIENTS, RESPONSES, MODELS))
    return tables_of(truthful=not next(there), respond=next(there), models=next(there))
