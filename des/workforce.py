"""The clients that work in a market, on its clock."""

from collections.abc import Sequence

import simpy

from des.client import Client, Job
from des.journal import Journal


class Workforce:
    """Gives jobs to clients. Only those that have been awarded something have a part in the simulation."""

    def __init__(self, env: simpy.Environment, cores: int) -> None:
        self._env, self._cores = env, cores
        self._clients: dict[int, Client] = {}

    def work(self, jobs: Sequence[Job], journal: Journal) -> simpy.Event:
        """Let clients work; return the event at which the last of them is done."""
        all_done, left = self._env.event(), len(jobs)

        def done() -> None:
            nonlocal left
            left -= 1
            if not left:
                all_done.succeed()

        for job in jobs:
            self._client(job.client).work(job, journal, done)
        return all_done

    def _client(self, index: int) -> Client:
        if index not in self._clients:
            self._clients[index] = Client(self._env, self._cores)
        return self._clients[index]
