"""One policy for every service, as ``--policy NAME``, ``NAME(key=value)`` or ``NAME:CHECKPOINT`` asks for it.

What a user asked for explicitly (``--set``, a sweep's values, ``--policy`` itself) is never dropped. Where two such
wishes conflict, it is an error that names both. What merely stands in the scenario's file gives way: the options and
the checkpoint of a service belong to the policy named there, and go with it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flmarket.core.errors import InputError
from flmarket.core.home import expanded
from flmarket.core.options import option_problems
from learning.policy import AS_CONFIGURED, POLICIES, agent_digest
from scenarios.file.overrides import AddressError, parse_assignment
from scenarios.file.schema import Scenario, Service
from scenarios.file.toml_text import value_text

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
        for key, problem in option_problems(POLICIES.load(name), choice.options, given=1):
            if key in choice.options:
                raise InputError(f"{what} {text!r}: policy {name!r} {problem}")
        return choice

    @classmethod
    def again(cls, label: str, scenario: Scenario, digest: str | None = None) -> "PolicyChoice":
        """Return the choice behind the label of a run, whose scenario says which checkpoint and options those were.

        Raises:
            KeyError: the label has an option that the scenario does not have.
        """
        first, (choice, at, _) = scenario.services[0], label.partition("@")
        name, *options = choice.split("+")
        keys = [option.partition("=")[0] for option in options if option != AS_CONFIGURED]
        return cls(name, first.checkpoint if at else None, {key: first.policy_options[key] for key in keys}, digest)

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
        """Return its label for runs of a scenario, which says so if services keep options or checkpoints of theirs."""
        given = self.options, self.checkpoint
        kept = any((service.policy_options, service.checkpoint) != given for service in scenario.services)
        return f"{self.label}+{AS_CONFIGURED}" if kept else self.label

    def apply(self, data: dict[str, Any], explicit: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Give the policy to every service."""
        if self.checkpoint is not None and not self.takes("checkpoint"):
            yield "", f"policy {self.name!r} takes no checkpoint"
            return
        for service in data["services"]:
            at = f"services.{service['name']}"
            own = {key.removeprefix(f"{at}."): source for key, source in explicit.items() if key.startswith(f"{at}.")}
            yield from ((f"{at}.{key}", message) for key, message in self._give(service, own))

    def _give(self, service: dict[str, Any], explicit: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Give the policy to one service; ``explicit`` has its keys alone."""
        if "policy" in explicit and service["policy"] != self.name:
            yield "policy", f"{explicit['policy']} asks for another policy; leave one of them out"
            return
        same, options = service["policy"] == self.name, service.get("policy_options", {})
        kept = {key: value for key, value in options.items() if same or _wanted(key, explicit)}
        for key, value in self.options.items():
            if (source := _wanted(key, explicit)) and options.get(key) != value:
                yield f"policy_options.{key}", f"{source} asks for another value; leave one of them out"
        service.update(policy=self.name, policy_options=kept | dict(self.options))
        if not same and "checkpoint" not in explicit:
            service.pop("checkpoint", None)
        if self.checkpoint is not None:
            if "checkpoint" in explicit and service.get("checkpoint") != self.checkpoint:
                yield "checkpoint", f"{explicit['checkpoint']} asks for another checkpoint; leave one of them out"
            service["checkpoint"] = self.checkpoint
        if "checkpoint" in explicit and not self.takes("checkpoint"):
            yield "checkpoint", f"policy {self.name!r} takes no checkpoint, but {explicit['checkpoint']} gives it one"
        for key in kept:
            if (source := _wanted(key, explicit)) and not self.takes(key):
                yield f"policy_options.{key}", f"policy {self.name!r} takes no option {key!r}, but {source} sets it"

    def seat(self, service: Service) -> Service:
        """Return the service with this policy, and nothing that was meant for the one before."""
        return service.model_copy(
            update={"policy": self.name, "policy_options": dict(self.options), "checkpoint": self.checkpoint}
        )

    def takes(self, option: str) -> bool:
        """Return whether the policy can be created with this keyword."""
        return option not in dict(option_problems(POLICIES.load(self.name), {option: None}, given=1))


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


def _wanted(option: str, explicit: Mapping[str, str]) -> str | None:
    """Return what asks for a policy's option, by itself or with the whole table."""
    return explicit.get(f"policy_options.{option}") or explicit.get("policy_options")
