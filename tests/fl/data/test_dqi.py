"""Equations (1), the EMD, and (6), the DQI, with values computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fl.data.dqi import JIAO, PRINTED, PUBLISHED, DQIParameters, alpha, dqi, dqi_range
from fl.data.emd import counted_emd, largest_emd
from support.emd import emd


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([5, 5], 0.0),
        ([7, 0], 1.0),  # |1 - 1/2| + |0 - 1/2|
        ([3, 1], 0.5),  # |3/4 - 1/2| + |1/4 - 1/2|
        ([2, 1], 1 / 3),  # 2 * (2/3 - 1/2)
        ([1, 0, 0], 4 / 3),  # 2/3 + 1/3 + 1/3
        ([100] * 10, 0.0),
        ([9, *[0] * 9], 1.8),  # 9/10 + 9 * 1/10
        ([20, 20, 20, 20, 20, 0, 0, 0, 0, 0], 1.0),  # 5 * 1/10 + 5 * 1/10
        ([30, 10, 10, 10, 10, 10, 10, 10, 0, 0], 0.4),  # 2/10 + 2 * 1/10
    ],
)
def test_equation_1_emd_from_uniform(counts: list[int], expected: float) -> None:
    assert counted_emd(np.array(counts)) == pytest.approx(expected, abs=1e-15)
    assert emd(counts) == pytest.approx(expected, abs=1e-15)  # with which other tests compare


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20).filter(any))
def test_equation_1_lies_between_iid_and_one_label(counts: list[int]) -> None:
    found = counted_emd(np.array(counts))
    assert -1e-12 <= found <= largest_emd(len(counts)) + 1e-12
    assert found == pytest.approx(emd(counts))
    assert found == pytest.approx(emd(counts[::-1]))  # labels have no order
    assert found == pytest.approx(emd([3 * n for n in counts]))  # nor does the size matter


@pytest.mark.parametrize(("labels", "largest"), [(2, 1.0), (10, 1.8), (62, 2 * 61 / 62)])
def test_equation_1_is_largest_for_a_single_label(labels: int, largest: float) -> None:
    assert largest_emd(labels) == pytest.approx(largest)
    assert counted_emd(np.array([1] + [0] * (labels - 1))) == pytest.approx(largest)


# Parameters for which eq. (6) can be worked out in one's head.
EASY = DQIParameters(eta1=0.2, eta2=math.log(2) / 2, eta3=0.01, eta4=0.5, eta5=0.0, eta6=1.0)


@pytest.mark.parametrize(
    ("size", "v", "expected"),
    [
        # alpha(0) = 0.5 exp(-0) = 0.5. D = 400: (0.01 * 400)^0.5 = 2; exp(-ln 2 / 2 * 2) = 1/2; 0.5 - 0.2 / 2
        (400, 0.0, 0.4),
        # D = 1600: 16^0.5 = 4; exp(-2 ln 2) = 1/4; 0.5 - 0.2 / 4
        (1600, 0.0, 0.45),
        # v = sqrt(ln 2): alpha = 0.5 exp(-ln 2) = 0.25. D = 1600: 16^0.25 = 2; 1/2; 0.25 - 0.1
        (1600, math.sqrt(math.log(2)), 0.15),
    ],
)
def test_equation_6_by_hand(size: int, v: float, expected: float) -> None:
    assert dqi(size, v, EASY) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("size", "v", "expected_alpha", "expected"),
    [  # Worked out with bc, 20 digits: a = .7084 e^-((v+.3189)/1.233)^2, a + .1922 e^(-.2613 (.00063 D)^a)
        (100, 0.4, 0.50424497835377668281, 0.68438166208263722928),
        (400, 0.4, 0.50424497835377668281, 0.67294635956157547698),
        (100, 1.0, 0.22561283101356607715, 0.39269663173423126257),
        (400, 1.0, 0.22561283101356607715, 0.38432181696856102070),
    ],
)
def test_equation_6_with_the_published_parameters(size, v, expected_alpha, expected) -> None:
    assert alpha(v, PUBLISHED) == pytest.approx(expected_alpha, rel=1e-12)
    assert dqi(size, v, PUBLISHED) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("size", "v", "expected_alpha", "expected"),
    [  # Worked out with 40 digits: a = .993 e^-((v+.31)/1.743)^2, a - .361 e^(-4.348 (.001 D)^a)
        (100, 0.4, 0.84117675172746259756, 0.64829036521591792108),
        (400, 0.4, 0.84117675172746259756, 0.79288641247839254650),
        (100, 1.0, 0.56445550893542273303, 0.45411597470211581792),
        (400, 1.0, 0.56445550893542273303, 0.53743304779666225566),
    ],
)
def test_equation_6_with_the_parameters_of_jiao(size, v, expected_alpha, expected) -> None:
    assert alpha(v, JIAO) == pytest.approx(expected_alpha, rel=1e-12)
    assert dqi(size, v, JIAO) == pytest.approx(expected, rel=1e-12)


@given(st.sampled_from([PRINTED["jiao"], EASY]), st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 1.8))
def test_equation_6_rises_with_the_data_size_where_eta1_is_positive(parameters, less, more, v) -> None:
    assert parameters.eta1 > 0
    assert dqi(less, v, parameters) <= dqi(less + more, v, parameters) + 1e-12


def test_equation_6_takes_whole_markets_at_once() -> None:
    sizes, emds = np.array([[100], [400]]), np.array([0.4, 1.0])
    together = dqi(sizes, emds, PUBLISHED)
    assert together.shape == (2, 2)
    assert together[1, 0] == dqi(400, 0.4, PUBLISHED)


def test_equation_6_as_published_prefers_less_data() -> None:
    """The finding in docs/decisions/dqi.md: with eta1 < 0 the DQI falls with the data size, with |eta1| it rises."""
    sizes = np.array([100, 200, 300, 400])
    repaired = DQIParameters(abs(PUBLISHED.eta1), *[getattr(PUBLISHED, f"eta{i}") for i in range(2, 7)])
    for v in (0.4, 0.6, 0.8, 1.0):
        assert (np.diff(dqi(sizes, v, PUBLISHED)) < 0).all()
        assert (np.diff(dqi(sizes, v, repaired)) > 0).all()
    for size in sizes:  # either way, it falls with the EMD
        assert (np.diff(dqi(size, np.array([0.4, 0.6, 0.8, 1.0]), PUBLISHED)) < 0).all()
        assert (np.diff(dqi(size, np.array([0.4, 0.6, 0.8, 1.0]), repaired)) < 0).all()


@given(
    parameters=st.builds(
        DQIParameters,
        st.floats(-1, 1), st.floats(0, 5), st.floats(1e-4, 0.1), st.floats(0, 1), st.floats(-2, 2), st.floats(0.1, 3),
    ),
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    labels=st.integers(2, 47),
    part=st.floats(0, 1),
)  # fmt: skip
def test_the_range_of_the_dqi_holds_every_emd_and_is_tight(
    parameters: DQIParameters, sizes: list[int], labels: int, part: float
) -> None:
    limit = largest_emd(labels)
    low, high = dqi_range(sizes, limit, parameters)
    assert low <= dqi(sizes, part * limit, parameters).min()
    assert dqi(sizes, part * limit, parameters).max() <= high
    every = dqi(np.array(sizes)[:, None], np.linspace(0, limit, 400), parameters)
    reach = 0.01 + 0.03 * np.ptp(every)
    assert every.min() - low < reach
    assert high - every.max() < reach
