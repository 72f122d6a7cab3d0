"""One policy for every service, as ``--policy NAME``, ``NAME(key=value)`` or ``NAME:CHECKPOINT`` asks for it.

Values come from the scenario's file, then from the policy for all, then from overrides (``--set``) and a sweep. The
options and the checkpoint that the file gives a service belong to the policy named there, and go with it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.files import expanded
from learning.policy import AS_CONFIGURED, POLICIES, agent_digest
from scenarios.file.overrides import AddressError, parse_assignment, service_tables
from scenarios.file.schema import Scenario, Service
from scenarios.file.toml import value_text

_LONGEST_STEM = 24
_WRITTEN = re.compile(r"([^(:]*)\((.*)\)(:.*)?", re.S)  # with options


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy, its options, and what it has learned."""

    name: str  # the policy's name
    checkpoint: str | None = None  # the file of what it has learned; None leaves that to the scenario or the policy
    options: Mapping[str, Any] = field(default_factory=dict)  # those that are given with the name
    digest: str | None = None  # of what it has learned, where that is known; else its file is read

    @classmethod
    def parse(cls, text: str, what: str = "policy") -> "PolicyChoice":
        """Read ``NAME``, with ``(key=value, ...)`` or ``:CHECKPOINT`` or both; ``what`` it is in messages."""
        found = _WRITTEN.fullmatch(text)
        name, checkpoint = parted(f"{found[1]}{found[3] or ''}" if found else text)
        if checkpoint is None and ":" in (found[3] or "" if found else text):
            raise InputError(f"{what} {text!r}: the path of a checkpoint must follow the colon: NAME:CHECKPOINT")
        if name.endswith(".py") and checkpoint:
            raise InputError(f"{what} {text!r}: load the plug-in file {name} first, then name {checkpoint} alone")
        if "(" in name:
            raise InputError(f"{what} {text!r}: options stand between parentheses: {name.partition('(')[0]}(KEY=VALUE)")
        if "," in name:
            raise InputError(f"{what} {text!r}: name each by itself")
        POLICIES.load(name)
        options = [*_options(found[2] or "", f"{what} {text!r}")] if found else []
        if twice := [key for place, (key, _) in enumerate(options) if key in dict(options[:place])]:
            raise InputError(f"{what} {text!r}: the option {twice[0]!r} is given twice; leave one out")
        choice = cls(name, checkpoint, dict(options))
        for key, problem in POLICIES.wrong_options(name, choice.options):
            if key in choice.options:
                raise InputError(f"{what} {text!r}: policy {name!r} {problem}")
        return choice

    @classmethod
    def again(cls, label: str, scenario: Scenario, digests: Mapping[str, str] = MappingProxyType({})) -> "PolicyChoice":
        """Return the choice behind the label of a run, whose scenario says which checkpoint and options those were.

        Args:
            label: of the run.
            scenario: that of the run.
            digests: those of its agents, as meta.json records them; else their files are read.

        Raises:
            KeyError: no service plays what the label says.
        """
        choice, at, _ = label.partition("@")
        name, *options = choice.split("+")
        keys = [option.partition("=")[0] for option in options if option != AS_CONFIGURED]
        for service in scenario.services:
            if service.policy == name and service.policy_options.keys() >= {*keys}:
                given = {key: service.policy_options[key] for key in keys}
                found = cls(name, service.checkpoint if at else None, given, digests.get(f"agent/{service.name}"))
                if found.label == label.removesuffix(f"+{AS_CONFIGURED}"):
                    return found
        raise KeyError(label)

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value_text(value)}" for key, value in self.options.items())
        return f"{self.name}{f'({options})' if options else ''}{f':{self.checkpoint}' if self.checkpoint else ''}"

    @property
    def label(self) -> str:
        """Its name in tables and folders: ``hqfa``, ``fmore+weight=4``, or ``mahdrl@mine-1a2b3c4d`` for a checkpoint.

        The digits come from what the policy loads: two checkpoints never share a folder, whatever their names. Values
        of options that cannot stand in a folder's name, or are too long, have digits of their own.
        """
        name = "+".join([self.name, *(f"{key}={_value_in_a_path(str(value))}" for key, value in self.options.items())])
        if self.checkpoint is None:
            return name
        digest = (agent_digest(self.name, self.checkpoint) if self.digest is None else self.digest) or ""
        stem = _in_a_path(Path(self.checkpoint).stem)
        return f"{name}@{stem}-{digest[:8]}" if stem else f"{name}@{digest[:8]}"

    def label_in(self, scenario: Scenario) -> str:
        """Return its label for runs of a scenario, which says so if services keep what the scenario gives them."""
        given = self.name, self.options, self.checkpoint
        kept = any((it.policy, it.policy_options, it.checkpoint) != given for it in scenario.services)
        return f"{self.label}+{AS_CONFIGURED}" if kept else self.label

    def apply(self, data: dict[str, Any], seats: Mapping[str, Mapping[str, Any]]) -> None:
        """Give the policy to every service but those that have another by an override; see ``Scenario.seats``."""
        for service in service_tables(data):
            override = seats.get(service["name"], {})
            if override.get("policy", self.name) == self.name:
                file = service if service["policy"] == self.name else {}
                options = file.get("policy_options", {}) | dict(self.options) | override.get("policy_options", {})
                checkpoint = override.get("checkpoint", self.checkpoint or file.get("checkpoint"))
                service.update(policy=self.name, policy_options=options, checkpoint=checkpoint)

    def plays(self, service: Service) -> bool:
        """Return whether a service plays it, perhaps with more options or an agent of the scenario's."""
        same = service.policy == self.name and self.options.items() <= service.policy_options.items()
        return same and self.checkpoint in (None, service.checkpoint)

    def seat(self, service: Service) -> Service:
        """Return the service with this policy, and nothing that was meant for the one before."""
        return service.model_copy(
            update={"policy": self.name, "policy_options": dict(self.options), "checkpoint": self.checkpoint}
        )

    def takes(self, option: str) -> bool:
        """Return whether the policy can be created with this keyword."""
        return option not in dict(POLICIES.wrong_options(self.name, {option: None}))


def _options(text: str, given: str) -> Iterator[tuple[str, Any]]:
    """Yield the options between parentheses; values as in TOML, and bare words as text."""
    item, problem = "", AddressError()
    for part in text.split(","):
        item = f"{item},{part}" if item.strip() else part
        try:
            yield parse_assignment(item.strip())
        except AddressError as error:  # the comma may be one in the value
            problem = error
        else:
            item = ""
    if item.strip():
        raise InputError(f"{given}: {item.strip()}: {problem}") from problem


def _value_in_a_path(text: str) -> str:
    if len(text) <= _LONGEST_STEM and re.fullmatch(r"[A-Za-z0-9._-]+", text):
        return text
    return f"{_in_a_path(text)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")


def _in_a_path(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:_LONGEST_STEM].strip(".-")


def parted(text: str) -> tuple[str, str | None]:
    """Return the name and the checkpoint in ``NAME`` or ``NAME:CHECKPOINT``. Loads nothing. Raises as ``expanded``."""
    name, _, checkpoint = text.partition(":")
    return name, (str(expanded(checkpoint)) if checkpoint.startswith("~") else checkpoint) or None


def policy_again(label: str, scenario: Scenario) -> str | None:
    """Return the policy for all with which a run's scenario leads to it; None if that is the one of each service."""
    if label == AS_CONFIGURED:
        return None
    choice = PolicyChoice.again(label, scenario)
    return str(choice) if all(map(choice.plays, scenario.services)) else None
