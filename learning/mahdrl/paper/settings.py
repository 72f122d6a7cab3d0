"""The hyper-parameters of `mahdrl-paper`: the paper's where it prints them, and switches for departures."""

from dataclasses import dataclass
from typing import Literal

from fl.errors import InputError
from learning.mahdrl.paper.actor_critic import Network, Payments
from learning.mahdrl.ranges import Count, NotNegative, Part, Positive, Rate


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of Algorithm 1: the paper's where it prints them, and else those of a trial.

    docs/decisions/algorithm1.md describes the trial, what is ours, and what that is worth.
    """

    # ``clients``, ours, is one network that all clients share; ``slots`` maps the state to one output per client, as
    # P-DQN does; ``passes`` is MP-DQN's critic, of which each output sees its own client's payment alone
    network: Network = "clients"
    payments: Payments = "actor"  # ``actor`` (the paper's), or ``bid``: no payment is learned
    # how serial selection is read. ``ranking``: one Q for each client, and clients by falling Q; ``serial``: a sub-MDP
    # in each slot, with one client a step (see ``serial``)
    selection: Literal["ranking", "serial"] = "ranking"
    # ``td``, eq. (11); ``double``, eq. (11) with Double-Q; or ``advantage``, the n-step advantage in its place (see
    # ``transitions``)
    target: Literal["td", "double", "advantage"] = "td"
    hidden: tuple[Count, ...] = (120, 60)  # neurons of the hidden layers of actor and critic; the paper's
    replay: Count = 4000  # transitions kept for each agent; the paper's
    batch: Count = 32  # transitions in an update; the paper's
    discount: Part = 0.95  # gamma; the paper's
    # whether rewards are measured from the usual one in their round (see ``rewards``); ours. It must be off with
    # ``target="advantage"``, which compares with what is usual already.
    centred: bool = True
    # whether the value of the next state is cut to +-1 / (1 - gamma), the most that rewards in units of Omega can add
    # up to; ours
    bounded: bool = True
    soft: Rate = 0.01  # varsigma of eq. (12); the paper's
    # subtracted from the actor's output before the sigmoid, so that an untrained actor pays about 0.7 % above the bid
    # (with 2: 12 %), not 50 %; ours
    bias: NotNegative = 5.0
    # both learning rates of Adam are those of DDPG (Lillicrap et al., "Continuous control with deep reinforcement
    # learning", ICLR 2016)
    actor_rate: Positive = 1e-4
    critic_rate: Positive = 1e-3
    noise: NotNegative = 0.05  # the standard deviation per round of the random process xi, which is DDPG's; ours
    reversion: Part = 0.15  # its pull towards 0; DDPG's
    fading: bool = False  # whether xi shrinks as epsilon does; the paper has no schedule for either
    horizon: Count = 10  # of the advantage; see ``credit.advantages``
    scale: Positive = 3.0  # of the advantage

    def __post_init__(self) -> None:
        if self.centred and self.target == "advantage":
            raise InputError(
                "--option target=advantage: compares with what is usual already; add --option centred=false"
            )
        if self.selection == "serial" and (self.network != "slots" or self.target != "td"):
            raise InputError("--option selection=serial: needs --option network=slots, and target=td")

    @property
    def values_within(self) -> tuple[float, float]:
        """Bounds of a next state's value: rewards of at most 1, discounted, cannot add up to more.

        Centred rewards of both signs get as much room on either side, which they do not use up.
        """
        most = 1.0 / (1.0 - self.discount) if self.bounded and self.discount < 1 else float("inf")
        return (-most if self.centred else 0.0), most
