"""The scenarios of the golden values: every key of docs/scenario.md that changes a log stands in at least two."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

QUICK = {"training.backend": "surrogate", "rounds": 8}
"""Nothing is trained, for a few rounds: some hundredths of a second."""

TRAINED = {"rounds": 3, "training.eval_samples": 200}
"""Networks are trained, on images that come with flmarket."""


class Case(NamedTuple):
    """A scenario, and what is changed in it.

    Attributes:
        scenario: a built-in one, or a file.
        changes: by dotted key.
    """

    scenario: str
    changes: Mapping[str, Any]


HERE = Path(__file__).parent
GIVEN = str(HERE / "streams.toml")
AGENT = "tools/golden/agents/mahdrl-seed{}.safetensors"
POLICIES = {
    "paper's": ("lcfa", "hqfa", "random"), "bandits": ("ucb", "oort", "bwk"),
    "pacing": ("pacing", "resolving", "mirror"), "market": ("worth", "outbid", "fmore"),
    "informed": ("d-first", "oracle", "dearest"),
    "others": ("contribution", "stackelberg", "greedy"), "learned": ("mahdrl", "mahdrl-single", "hqfa"),
}  # fmt: skip


def _played(policies: tuple[str, str, str]) -> dict[str, Any]:
    services = ("mnist", "fashion-mnist", "emnist")
    return {f"services.{name}.policy": policy for name, policy in zip(services, policies, strict=True)}


CASES: Mapping[str, Case] = {
    **{f"{name} policies": Case("paper", QUICK | _played(policies)) for name, policies in POLICIES.items()},
    "a small market": Case(
        "paper",
        QUICK | _played(("hqfa", "mahdrl", "pacing"))
        | {"dqi": "fitted", "clients.count": 7, "clients.cores": 1, "clients.data_size": [50, 150],
           "clients.emd": [0.3, 0.9]},
    ),
    "a large market": Case(
        "crowd",
        {"rounds": 4, "training.backend": "noiseless", "clients.count": 90, "clients.cores": 3,
         "clients.data_size": [120], "clients.cost.per_emd": 0.2},
    ),
    "costs": Case(
        "paper", QUICK | {"clients.cost.per_sample": 0.05, "clients.cost.per_emd": -0.5, "clients.emd": [0.5]}
    ),
    "noisy costs": Case(
        "paper", QUICK | _played(("lcfa", "greedy", "outbid"))
        | {"clients.cost.noise": 0.3, "clients.cost.per_sample": 0.1, "clients.cost.per_emd": 2.0},
    ),
    "secrets": Case(
        "private", QUICK | _played(("mahdrl", "outbid", "hqfa"))
        | {"market.bids": "own", "market.dqi": "rank", "market.dqi_noise": 0.4, "clients.cost.noise": 0.9},
    ),
    "own bids": Case(
        "paper", QUICK | _played(("outbid", "mahdrl", "stackelberg")) | {"market.bids": "own", "market.dqi_noise": 0.1}
    ),
    "ranks": Case("paper", QUICK | _played(("hqfa", "ucb", "fmore")) | {"market.dqi": "rank", "dqi": "fitted"}),
    "label mixes": Case(
        "paper", QUICK | {"clients.emd": [], "clients.label_mix.dirichlet": 0.3, "clients.cost.per_emd": 0.5}
    ),
    "even label mixes": Case(
        "scarce", QUICK | {"clients.emd": [], "clients.label_mix.dirichlet": 10, "clients.cost.per_emd": 0.5}
    ),
    "lasting data": Case(
        "paper", QUICK | _played(("oort", "contribution", "bwk"))
        | {"clients.lasting.persistence": 0.8, "clients.lasting.drift": 0.1},
    ),
    "lasting label mixes": Case(
        "paper", QUICK
        | {"clients.emd": [], "clients.label_mix.dirichlet": 1, "clients.cost.per_emd": 0.1,
           "clients.lasting.persistence": 1.0, "clients.lasting.drift": 0.3},
    ),
    "slow clients": Case(
        "paper", QUICK
        | {"clients.speed": [0.25, 1, 4], "timeline.seconds_per_sample": 0.02, "timeline.upload_seconds": 1.5,
           "timeline.slot": 9, "timeline.deadline": 6},
    ),
    "slots without a deadline": Case(
        "scarce", QUICK
        | {"clients.speed": [1, 2], "timeline.seconds_per_sample": 0.01, "timeline.upload_seconds": 0.25,
           "timeline.slot": 4},
    ),
    "a deadline without slots": Case(
        "paper", QUICK | {"timeline.deadline": 0.75, "clients.departure_rate": 0.2, "clients.speed": [1, 3]}
    ),
    "bandwidths": Case(
        "paper", QUICK
        | {"clients.download_mbps": [2, 30], "clients.upload_mbps": [0.5, 4.25], "timeline.upload_seconds": 0,
           "services.mnist.model_bytes": 400_001, "timeline.deadline": 7,
           "clients.groups": [{"name": "wired", "count": 5, "download_mbps": [90], "upload_mbps": [45]}]},
    ),
    "bandwidths of groups, trained": Case(
        "quickstart", TRAINED
        | {"clients.download_mbps": [3.5], "clients.upload_mbps": [1, 0.2], "timeline.upload_seconds": 0,
           "services.strokes.model_bytes": 90_000, "services.digits.model_bytes": 7, "timeline.slot": 9,
           "clients.groups": [{"name": "wired", "count": 6, "download_mbps": [50, 60], "upload_mbps": [20.25]}]},
    ),
    "devices": Case(
        "scarce", QUICK
        | {"clients.devices": str(HERE / "devices.csv"), "timeline.upload_seconds": 0, "timeline.deadline": 5},
    ),
    "devices of groups": Case(
        "paper", QUICK
        | {"clients.devices": str(HERE / "devices.csv"), "timeline.upload_seconds": 0, "timeline.slot": 6,
           "clients.groups": [{"name": "few", "count": 7, "cores": 1}], "clients.departure_rate": 0.1},
    ),
    "departures": Case("scarce", QUICK | {"clients.departure_rate": 0.4, "timeline.seconds_per_sample": 0.01}),
    "offline clients": Case("paper", QUICK | {"clients.availability": str(HERE / "some.csv")}),
    "few clients are there": Case(
        "scarce", QUICK | {"clients.availability": str(HERE / "few.csv"), "clients.count": 12}
    ),
    "markups": Case(
        "paper", QUICK | {"clients.behaviour.kind": "markup", "clients.behaviour.options.share": [0.1, 0.6]}
    ),
    "learning clients": Case(
        "scarce", QUICK | {"clients.behaviour.kind": "adaptive", "clients.behaviour.options.exploration": 0.5}
    ),
    "misreports": Case(
        "quickstart", TRAINED
        | {"clients.behaviour.kind": "misreport",
           "clients.behaviour.options": {"size": 0.5, "emd": -0.5, "share": 0.6}},
    ),
    "rings": Case(
        "paper", QUICK | {"clients.behaviour.kind": "ring", "clients.behaviour.options": {"size": 3, "cover": 0.1}}
    ),
    "uniform prices": Case("mechanisms", {"rounds": 5, "sweep": {"market.mechanism": ["uniform-price", "vcg"]}}),
    "fair queue": Case("scarce", QUICK | {"market.mechanism": "fair-queue", "market.options.weight": 0.5}),
    "iterated": Case("scarce", QUICK | {"market.mechanism": "iterated", "market.options.steps": 3}),
    "posted prices": Case(
        "paper", QUICK | _played(("fmore", "worth", "hqfa"))
        | {"market.mechanism": "posted-price", "market.options": {"price_per_sample": 0.03, "step": 0.1}},
    ),
    "score auction": Case(
        "paper", QUICK | _played(("fmore", "worth", "hqfa"))
        | {"market.mechanism": "score-auction", "market.options.payment": "second-score"},
    ),
    "proportional share": Case("scarce", QUICK | {"market.mechanism": "proportional-share"}),
    "vcg of clients": Case("scarce", QUICK | {"market.mechanism": "vcg", "market.options.side": "clients"}),
    "a changing world": Case(
        "changing", {"rounds": 12, "services.mnist-one.total_budget": 55, "services.fashion-late.arrival": 4}
    ),
    "total budgets": Case(
        "paper", QUICK | _played(("bwk", "mirror", "resolving"))
        | {"services.mnist.total_budget": 60, "services.emnist.total_budget": 31.5, "services.emnist.arrival": 3},
    ),
    "budgets and targets": Case(
        "paper", {"training.backend": "surrogate", "rounds": 25}
        | {"services.mnist.budget": 31, "services.emnist.budget": 7.5, "services.mnist.target_accuracy": 0.8,
           "services.emnist.target_accuracy": 0.6, "services.mnist.reward_base": 7, "services.emnist.reward_base": 300},
    ),
    "an agent": Case(
        "paper", QUICK
        | {"services.mnist.policy": "mahdrl", "services.mnist.checkpoint": AGENT.format(0),
           "services.mnist.policy_options": {"payments": "bid"}, "services.emnist.policy": "mahdrl",
           "services.emnist.checkpoint": AGENT.format(3), "services.mnist.dataset": "fashion-mnist"},
    ),
    "options of policies": Case(
        "scarce", QUICK
        | {"services.mnist-rich.policy": "pacing", "services.mnist-rich.policy_options": {"rate": 0.2},
           "services.emnist-poor.policy": "resolving", "services.emnist-poor.policy_options": {"haste": 1.5},
           "services.mnist-rich.dataset": "emnist-digits"},
    ),
    "one service learns": Case(
        "scarce", QUICK
        | {"services.mnist-poor.policy": "mahdrl", "services.mnist-poor.checkpoint": AGENT.format(2),
           "services.mnist-poor.budget": 17, "services.mnist-poor.reward_base": 3,
           "services.fashion-rich.target_accuracy": 0.2},
    ),
    "interventions": Case(
        "paper", QUICK
        | {"interventions": [
            {"round": 2, "key": "services.mnist.budget", "value": 9},
            {"round": 3, "key": "clients.offline", "value": [0, 5, 6]},
            {"round": 4, "key": "services.emnist.policy", "value": {"policy": "oort"}},
            {"round": 5, "key": "market.mechanism", "value": "uniform-price"},
            {"round": 6, "key": "clients.cores", "value": 1}]},
    ),
    "more interventions": Case(
        "scarce", QUICK
        | {"interventions": [
            {"round": 3, "key": "market.mechanism", "value": {"mechanism": "fair-queue", "options": {"weight": 0.9}}},
            {"round": 5, "key": "clients.offline", "value": [1, 2, 3, 4]}]},
    ),
    "a sweep": Case(
        "paper", QUICK | {"rounds": 3, "sweep": {"clients.cores": [1, 3], "services.mnist.budget": [10, 20]}}
    ),
    "a list of runs": Case(
        "paper", QUICK
        | {"rounds": 3, "runs": [{"dqi": "fitted", "services.mnist.policy": "lcfa"}, {"clients.count": 5}]},
    ),
    "runs in a sweep": Case(
        "quickstart", {"training.backend": "surrogate", "rounds": 3}
        | {"sweep": {"clients.cores": [1, 2]}, "runs": [{"services.digits.policy": "ucb"}, {"clients.count": 9}]},
    ),
    "training": Case(
        "quickstart", TRAINED
        | {"training.model": "mlp", "training.local_epochs": 1, "training.batch_size": 20,
           "training.learning_rate": 0.1, "training.momentum": 0.5, "training.validation": 0.2,
           "training.kernel": "reference"},
    ),
    "training by data set": Case(
        "quickstart", TRAINED
        | {"training.by_dataset": {"strokes": {"momentum": 0.2, "model": "mlp"}, "digits": {"batch_size": 7}},
           "training.validation": 0, "training.learning_rate": 0.02},
    ),
    "training with other images": Case(
        "quickstart", TRAINED
        | {"training.eval_samples": 50, "training.batch_size": 16, "training.local_epochs": 3, "training.momentum": 0.9,
           "training.kernel": "reference", "training.model": "mlp",
           "training.by_dataset": {"scribbles": {"learning_rate": 0.01}}},
    ),
    "groups of clients": Case(
        "paper", QUICK | _played(("lcfa", "hqfa", "mahdrl"))
        | {"clients.groups": [
            {"name": "servers", "count": 4, "data_size": [150, 200], "speed": [8],
             "cost": {"per_sample": 0.04, "per_emd": 0.5}},
            {"name": "phones", "count": 5, "emd": [0.8], "departure_rate": 0.2}]},
    ),
    "groups that train": Case(
        "quickstart", TRAINED
        | {"clients.groups": [
            {"name": "lopsided", "count": 6, "data_size": [60], "emd": [1.1], "speed": [0.5, 2],
             "departure_rate": 0.1, "cost": {"per_sample": 0.03, "per_emd": 0.2}}]},
    ),
    "groups with label mixes": Case(
        "paper", QUICK | _played(("worth", "d-first", "ucb"))
        | {"clients.emd": [], "clients.label_mix.dirichlet": 1.0,
           "clients.groups": [{"name": "narrow", "count": 7, "label_mix": {"dirichlet": 0.2}}]},
    ),
    "more groups with label mixes": Case(
        "quickstart", TRAINED
        | {"clients.emd": [], "clients.label_mix.dirichlet": 0.5, "clients.data_size": [50, 100],
           "clients.cost.per_emd": 0.5,
           "clients.groups": [
            {"name": "even", "count": 3, "label_mix": {"dirichlet": 100}},
            {"name": "narrow", "count": 3, "label_mix": {"dirichlet": 0.1}, "data_size": [40]}]},
    ),
    "costs of clients' own": Case(
        "paper", QUICK | _played(("worth", "hqfa", "lcfa"))
        | {"clients.cost": {"kind": "energy", "options": {"upload": 0.5, "cycles": 2e7},
                            "unit": {"uniform": [0.5, 2.0], "each": "service"}},
           "clients.speed": [0.5, 2], "market.data": "public",
           "clients.groups": [
            {"name": "dear", "count": 5, "cost": {"kind": "quality", "unit": {"choices": [2, 5], "each": "client"}},
             "behaviour": {"kind": "markup", "options": {"share": 0.3}}},
            {"name": "shirts", "count": 4, "cost": {"kind": "energy", "options": {"upload": 1.0},
             "unit": {"uniform": [1, 3]}}}]},
    ),
    "types of few kinds": Case(
        "paper", QUICK
        | {"clients.cost": {"kind": "energy", "options": {"kappa": 2e-28},
                            "unit": {"choices": [1, 2, 3], "each": "client"}},
           "market.data": "public",
           "clients.groups": [
            {"name": "liars", "count": 6, "behaviour": {"kind": "misreport", "options": {"size": 0.5}},
             "cost": {"kind": "energy", "options": {"upload": 0.2}, "unit": {"choices": [1, 4], "each": "service"}}},
            {"name": "others", "count": 3, "cost": {"kind": "unit", "unit": {"uniform": [0.01, 0.03]}}}]},
    ),
    "prices of clients' own": Case(
        "scarce", QUICK | {"clients.cost": {"kind": "unit", "unit": {"uniform": [0.01, 0.05]}}}
    ),
    "one client after another": Case("scarce", QUICK | {"market.impressions": "sequential"}),
    "second prices one after another": Case(
        "paper", QUICK | _played(("greedy", "worth", "hqfa"))
        | {"market.impressions": "sequential", "market.mechanism": "uniform-price", "market.contract_rounds": 2}
    ),
    "contracts": Case(
        "scarce", QUICK
        | {"market.contract_rounds": 3, "market.cancel_fee": 0.2, "services.mnist-rich.target_accuracy": 0.5,
           "services.emnist-poor.total_budget": 40}
    ),
    "contracts and departures": Case(
        "paper", QUICK | _played(("greedy", "worth", "hqfa"))
        | {"market.contract_rounds": 2, "market.cancel_fee": 0.5, "market.mechanism": "uniform-price",
           "clients.departure_rate": 0.2, "services.mnist.target_accuracy": 0.5}
    ),
    "prices of two kinds": Case(
        "scarce", QUICK | {"clients.cost": {"kind": "unit", "unit": {"choices": [0.01, 0.04]}, "noise": 0.2}}
    ),
    "trimmed means": Case(
        "quickstart", TRAINED | {"training.aggregation": {"kind": "trimmed-mean", "options": {"share": 0.2}}}
    ),
    "clipped norms": Case(
        "quickstart", TRAINED | {"training.aggregation": {"kind": "norm-clip", "options": {"norm": 0.5}}}
    ),
    "groups that behave in their own ways": Case(
        "paper", QUICK | _played(("greedy", "hqfa", "outbid"))
        | {"clients.groups": [
            {"name": "ring", "count": 4, "behaviour": {"kind": "ring", "options": {"size": 2}}},
            {"name": "dear", "count": 5, "behaviour": {"kind": "markup", "options": {"share": [0.1, 0.4]}},
             "services": ["mnist", "emnist"]},
            {"name": "learners", "count": 4, "behaviour": {"kind": "adaptive"}}]},
    ),
    "groups of which one misreports": Case(
        "quickstart", TRAINED
        | {"clients.groups": [
            {"name": "liars", "count": 6, "behaviour": {"kind": "misreport", "options": {"size": 0.5}}},
            {"name": "honest", "count": 3, "services": ["digits"]}]},
    ),
    "groups that ride free and poison": Case(
        "quickstart", TRAINED
        | {"clients.groups": [
            {"name": "riders", "count": 4, "free_ride": "old"},
            {"name": "careless", "count": 3, "label_noise": 0.4},
            {"name": "attackers", "count": 2, "label_flip": 1.0, "update_scale": 2.0}]},
    ),
    "groups whose updates are random or point back": Case(
        "quickstart", TRAINED
        | {"training.aggregation.kind": "median",
           "clients.groups": [
            {"name": "riders", "count": 3, "free_ride": "random"},
            {"name": "attackers", "count": 2, "label_noise": 0.1, "label_flip": 0.5, "update_scale": -1.0}]},
    ),
    "groups with fewer cores": Case(
        "paper", QUICK | _played(("greedy", "oracle", "outbid"))
        | {"clients.cores": 3, "interventions": [{"round": 5, "key": "clients.cores", "value": 2}],
           "clients.groups": [{"name": "phones", "count": 8, "cores": 1}, {"name": "laptops", "count": 6, "cores": 2}]},
    ),
    "phones with a core each": Case(
        "quickstart", TRAINED
        | {"clients.cores": 2, "market.mechanism": "posted-price",
           "market.options": {"price_per_sample": 0.05, "step": 0.1},
           "clients.groups": [{"name": "phones", "count": 9, "cores": 1}]},
    ),
    "work that outlasts rounds": Case(
        "paper", QUICK | _played(("hqfa", "greedy", "random"))
        | {"timeline.mode": "continuous", "timeline.slot": 20.0, "clients.speed": [0.2, 1.0, 5.0],
           "timeline.jitter": 0.5, "timeline.download_seconds": 0.25, "services.mnist.budget_cap": 40,
           "services.mnist.aggregate.kind": "fedasync",
           "services.mnist.aggregate.options": {"mixing": 0.5},
           "timeline.aggregate.kind": "fedbuff", "timeline.aggregate.options": {"buffer": 3}},
    ),
    "work that outlasts rounds, trained": Case(
        "stragglers", TRAINED
        | {"timeline.mode": "continuous", "timeline.slot": 6.0, "timeline.jitter": 0.3,
           "timeline.download_seconds": 0.5, "services.periodic.budget_cap": 30,
           "timeline.aggregate.kind": "semi-async", "timeline.aggregate.options": {"exponent": 1.0},
           "services.waits.aggregate.kind": "wait-for-all", "services.waits.aggregate.options": {"first": 2},
           "services.buffers.aggregate.kind": "fedbuff",
           "services.buffers.aggregate.options": {"buffer": 2, "exponent": 0.2}},
    ),
    "decisions when cores come free": Case(
        "paper", QUICK | _played(("hqfa", "greedy", "pacing"))
        | {"timeline.mode": "continuous", "timeline.slot": 20.0, "clients.speed": [0.2, 1.0, 5.0], "rounds": 60,
           "timeline.decide": ["free"], "timeline.slots": 2, "services.mnist.budget_cap": 40},
    ),
    "decisions when models are made, trained": Case(
        "stragglers", TRAINED
        | {"timeline.mode": "continuous", "timeline.slot": 6.0, "timeline.decide": ["model"], "timeline.slots": 1},
    ),
    "clients that come and go": Case(
        "paper", QUICK | _played(("hqfa", "greedy", "random"))
        | {"timeline.mode": "continuous", "timeline.slot": 10.0, "timeline.aggregate.kind": "fedasync",
           "clients.presence": {"stay_seconds": 12.0, "away_seconds": 5.5, "hours": [23.99, 0.02], "other_hours": 0.3},
           "clients.offline_work": "lost"},
    ),
    "clients that come and go, trained": Case(
        "stragglers", TRAINED
        | {"clients.presence": {"stay_seconds": 9.0, "away_seconds": 4.0, "hours": [0, 0.001], "other_hours": 0.5},
           "clients.offline_work": "lost"},
    ),
    "services in streams": Case(
        "job-stream", {"sweep": {}, "rounds": 18}
        | {"market.mechanism": "scheduler", "market.options": {"order": "venn"}, "streams.small.rate": 0.2,
           "streams.small.count": 3, "streams.small.patience": 45.0, "streams.large.rate": 0.1,
           "streams.large.arrival": 2},
    ),
    "services at given seconds": Case(
        GIVEN, {"streams.jobs.times": [0.0, 0.25, 3.0], "streams.jobs.count": 3, "market.mechanism": "scheduler",
                "market.options": {"order": "fifo"}},
    ),
    "services at given seconds that decide as cores come free": Case(
        GIVEN, {"streams.jobs.times": [0.25, 0.25], "streams.jobs.patience": 2.5, "timeline.decide": ["free"]},
    ),
    "services of a slower stream": Case(
        "job-stream", {"sweep": {}, "rounds": 12, "streams.large.rate": 0.15, "streams.special.rate": 0.5},
    ),
    "services that give up": Case(
        "paper", QUICK | _played(("hqfa", "greedy", "random"))
        | {"timeline.slot": 20.0, "services.mnist.patience": 55.0, "services.emnist.patience": 20.5,
           "market.mechanism": "scheduler", "market.options": {"order": "srsf"}},
    ),
    "services that give up while clients are at work": Case(
        "paper", QUICK | _played(("hqfa", "greedy", "random"))
        | {"timeline.mode": "continuous", "timeline.slot": 5.0, "services.mnist.patience": 12.0,
           "clients.speed": [0.2, 1.0]},
    ),
    "best responses": Case(
        "paper", QUICK | _played(("hqfa", "greedy", "worth"))
        | {"clients.response": {"kind": "quadratic", "of": "data", "options": {"curvature": 0.7}}},
    ),
    "clients that shirk": Case(
        "quickstart", TRAINED
        | {"clients.response": {"kind": "moral-hazard", "of": "epochs", "options": {"least": 0.4, "detection": 0.2}},
           "training.local_epochs": 2},
    ),
    "priced privacy": Case(
        "quickstart", TRAINED
        | {"clients.response": {"kind": "quadratic", "of": "epsilon", "epsilon": 2000.0, "delta": 1e-4, "clip": 0.2}},
    ),
    "dearer privacy": Case(
        "quickstart", TRAINED
        | {"clients.response": {"kind": "quadratic", "of": "epsilon", "epsilon": 9000.0, "delta": 1e-3, "clip": 0.5,
                                "options": {"curvature": 0.5}}},
    ),
    "clients that own images": Case(
        "quickstart", TRAINED
        | {"clients.emd": [], "clients.data_size": [30, 70], "clients.cost.per_emd": 0.5,
           "data.partition": "shards(2)", "data.by_dataset": {"strokes": {"partition": "iid"}}},
    ),
    "clients that bring all that they own": Case(
        "quickstart", {"training.backend": "surrogate", "rounds": 4}
        | {"clients.emd": [], "clients.data_size": [], "clients.cost.per_emd": 0.1, "clients.cost.per_sample": 0.02,
           "data.partition": "dirichlet(0.3)", "data.by_dataset": {"digits": {"partition": "shards(3)"}}},
    ),
}  # fmt: skip

TRAININGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "mahdrl": ("mahdrl", {}),
    "mahdrl as shipped": (
        "mahdrl", {"budget": True, "context": True, "curve": True, "lots": True, "hindsight": True, "members": 2}
    ),
    "Algorithm 1": ("mahdrl-paper", {"noise": 0.2, "bias": 2.0}),
}  # fmt: skip
"""Trainings by name: the policy and its options."""
