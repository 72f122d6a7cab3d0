"""Responses: best responses worked out by hand, menus, what is paid and trained, and what may not be answered."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des.mechanism import Book, Clearing, ClearingError, Menu, clearing_of, menu_of
from des.mechanisms.pay_as_offered import PayAsOffered
from des.money import MICRO, to_micro
from des.response import Awards, BestResponse, Response, ResponseError, Terms
from des.responses.moral_hazard import MoralHazard
from des.responses.quadratic import Quadratic
from fl.arrays import FloatArray
from fl.training.jobs import HONEST, TrainingJob
from support.books import book_of


def awards(price: list[float], cost: list[float], menu: Menu | None = None) -> Awards:
    count, ones = len(price), np.ones(len(price))
    places = np.arange(count)
    return Awards(1, np.zeros_like(places), places, np.array(price), np.array(cost), 100 + places, ones, ones, menu)


class Cubic(BestResponse):
    def cost(self, awards: Awards, quantity: FloatArray) -> FloatArray:
        return awards.cost * quantity * quantity * quantity

    def marginal(self, awards: Awards, quantity: FloatArray) -> FloatArray:
        return 3 * awards.cost * quantity * quantity


def test_the_best_response_to_a_quadratic_cost_is_the_one_worked_out_by_hand() -> None:
    answers = Terms(Quadratic()).answers(awards([3, 2, 1, 5], [2, 2, 2, 2]), to_micro(np.array([3.0, 2, 1, 5])))
    assert answers.promised.tolist() == [750_000, 500_000, 250_000, MICRO]  # price / (2 cost), at most 1
    assert answers.payment.tolist() == [2_250_000, 1_000_000, 250_000, 5_000_000]
    assert answers.cost.tolist() == [1_125_000, 500_000, 125_000, 2_000_000]
    assert answers.done is answers.promised or answers.done.tolist() == answers.promised.tolist()


def test_bisection_finds_the_closed_form_to_a_billionth() -> None:
    price, cost = [0.0, 0.1, 1.0, 2.9, 3.0, 7.0], [1.0] * 6
    exact = np.sqrt(np.array(price) / 3)  # where price = 3 q^2
    assert Cubic().respond(awards(price, cost)) == pytest.approx(np.minimum(exact, 1), abs=1e-9)
    quadratic = Quadratic(curvature=0.4)
    asked = awards([0.5, 0.7, 1.0, 1.3, 2.0], [1.0] * 5)
    assert BestResponse.respond(quadratic, asked) == pytest.approx(quadratic.respond(asked), abs=1e-9)


def test_work_that_costs_nothing_is_done_whole() -> None:
    for response in (Quadratic(), Cubic()):
        assert response.respond(awards([0, 2], [0, 0])).tolist() == [1, 1]


def test_off_a_menu_each_client_takes_what_leaves_it_the_most_or_nothing() -> None:
    menu = Menu(np.array([0.5, 1.0]), np.array([1_000_000, 1_500_000]))
    # A part q costs c q^2: the cheap one keeps 1.5 - .4, the middle one 1 - .25, the dear one would lose by both.
    answers = Terms(Quadratic()).answers(awards([2, 2, 2], [0.4, 1.0, 4.4], menu), to_micro(np.full(3, 2.0)))
    assert answers.promised.tolist() == [MICRO, 500_000, 0]
    assert answers.payment.tolist() == [1_500_000, 1_000_000, 0]


@pytest.mark.parametrize(
    ("quantity", "payment", "right"),
    [
        ([0.5, 1.0], [1, 3_000_000], True),
        ([0.5, 1.000001], [1, 1], False),  # more than all of the work
        ([0.0, 1.0], [1, 1], False),
        ([0.5, 0.5], [1, 1], False),
        ([], [], False),
        ([1.0], [1, 1], False),
        ([1.0], [0.5], False),
        ([1.0], [-1], False),
        ([1.0], [3_000_001], False),  # more than the price that was cleared
    ],
)
def test_what_a_menu_may_be(quantity: list[float], payment: list[float], right: bool) -> None:
    class Posting(PayAsOffered):
        def menu(self, book: Book, clearing: Clearing) -> Menu:
            return Menu(np.array(quantity), np.array(payment))

    book = book_of((0, 0, 3.0))
    clearing = clearing_of(PayAsOffered(), book, 1)
    with nullcontext() if right else pytest.raises(ClearingError, match=r"Posting.menu\(\)"):
        assert menu_of(Posting(), book, clearing, 1) is not None


def test_clients_shirk_where_it_saves_more_than_it_risks() -> None:
    response = MoralHazard(least=0.2, detection=0.5)  # shirking saves .8 cost, and risks .5 price
    answers = Terms(response).answers(awards([2, 2], [1.2, 1.3]), to_micro(np.array([2.0, 2.0])))
    assert answers.promised.tolist() == [MICRO, MICRO]
    assert answers.done.tolist() == [MICRO, 200_000]
    assert answers.payment.tolist() == [2_000_000, 2_000_000]
    assert answers.cost.tolist() == [1_200_000, 260_000]


MONEY = st.integers(0, 100 * MICRO)
JOB = TrainingJob("a", 3, size=10, emd=0.5)


def test_a_part_of_the_data_is_a_smaller_data_set_of_the_same_mix() -> None:
    terms = Terms(Quadratic())
    own = JOB._replace(counts=(4, 6, 0), images=np.arange(10))
    [part] = terms.training([own], samples=[7], done=[500_000], epochs=3)
    assert (part.size, part.counts, part.weight, part.conduct) == (5, (2, 3, 0), 7, None)
    assert part.images is not None
    assert part.images.tolist() == [0, 2, 4, 6, 8]
    assert terms.images(10, 1) == 1  # never none


def test_a_part_of_the_epochs_and_of_the_privacy_is_in_the_conduct() -> None:
    [fewer] = Terms(Quadratic(), "epochs").training([JOB], [10], [400_000], epochs=4)
    assert (fewer.size, fewer.conduct) == (10, HONEST._replace(epochs=2))
    [all_of_them] = Terms(Quadratic(), "epochs").training([JOB], [10], [MICRO], epochs=4)
    assert all_of_them.conduct is None
    [noisy] = Terms(Quadratic(), "epsilon", epsilon=2.0, delta=1.25e-5, clip=3.0).training([JOB], [10], [MICRO], 1)
    assert noisy.conduct is not None
    assert noisy.conduct.clip == 3
    assert noisy.conduct.noise == pytest.approx(3 * np.sqrt(2 * np.log(1e5)) / 2)


class Answering(Response):
    def __init__(self, quantity: object, done: float | None = None, cost: float = 0.0) -> None:
        self.quantity, self.done, self.costs = quantity, done, cost

    def respond(self, awards: Awards) -> FloatArray:
        return np.array(self.quantity)

    def work(self, awards: Awards, promised: FloatArray) -> FloatArray:
        return promised if self.done is None else np.full_like(promised, self.done)

    def cost(self, awards: Awards, quantity: FloatArray) -> FloatArray:
        return np.full_like(quantity, self.costs)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        (Answering([1.2]), "quantities are 0 to 1, not 1.2 to 1.2"),
        (Answering([float("nan")]), "must return 1 finite numbers, one for each award"),
        (Answering([0.5, 0.5]), "must return 1 finite numbers, one for each award"),
        (Answering([0.5], done=0.6), "what is done must be above 0, and at most what was promised"),
        (Answering([0.5], done=0.0), "what is done must be above 0, and at most what was promised"),
        (Answering([0.5], cost=-1.0), "a cost is below 0"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_with_its_place(response: Response, problem: str) -> None:
    with pytest.raises(ResponseError) as caught:
        Terms(response).answers(awards([1], [1]), np.array([MICRO]))
    assert problem in str(caught.value)
    assert "test_response.py" in str(caught.value)


def test_a_quantity_that_is_not_on_the_menu_is_refused() -> None:
    menu = Menu(np.array([0.25]), np.array([1]))
    with pytest.raises(ResponseError, match="a quantity is not on the menu, and not 0"):
        Terms(Answering([0.5])).answers(awards([1], [1], menu), np.array([MICRO]))


@given(st.lists(st.tuples(MONEY, MONEY), min_size=1, max_size=8), st.floats(0.01, 1))
def test_no_other_quantity_leaves_a_client_more_and_none_loses(pairs: list[tuple[int, int]], curve: float) -> None:
    asked = awards(*([amount / MICRO for amount in column] for column in zip(*pairs, strict=True)))
    response, prices = Quadratic(curvature=curve), to_micro(asked.price)
    answers = Terms(response).answers(asked, prices)
    kept = answers.payment - answers.cost
    assert ((answers.promised >= 0) & (answers.promised <= MICRO) & (answers.payment <= prices)).all()
    slack = 3 + 1e-5 * prices  # of rounding quantities and money to millionths
    assert (kept >= -slack).all()
    for other in np.linspace(0, 1, 11):
        quantity = np.full(len(pairs), other)
        assert (asked.price * quantity * MICRO - to_micro(response.cost(asked, quantity)) <= kept + slack).all()


def test_equal_awards_are_answered_alike_whatever_their_order() -> None:
    asked = awards([1, 2, 3], [2, 2, 2])
    turned = replace(asked, price=asked.price[::-1], clients=asked.clients[::-1], data_size=asked.data_size[::-1])
    assert Quadratic().respond(asked)[::-1].tolist() == Quadratic().respond(turned).tolist()
