"""Label mixes: draws from a Dirichlet distribution, whole numbers of images that fit them, and the EMDs of these.

Every test holds with the compiled extension and without it.
"""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fl.arithmetic import draws, elementary
from fl.arithmetic.draws import draw_key
from fl.arrays import FloatArray
from fl.data.dirichlet import LEAST, MOST, label_mixes, mixed_counts
from fl.data.emd import counted_emd, largest_emd
from support.emd import emd
from support.implementations import compiled_and_not

each = compiled_and_not(draws, elementary)

KEY = draw_key(0, "test")
MANY = 4000


def mixes(concentration: float, labels: int = 10, clients: int = MANY, round_: int = 1) -> FloatArray:
    return label_mixes(KEY, concentration, labels, round_, 0, np.arange(clients))


@pytest.mark.parametrize("labels", [2, 10, 47])
@pytest.mark.parametrize("concentration", [0.1, 0.3, 1.0, 2.5, 100.0])
def test_each_share_has_the_beta_distribution_of_a_dirichlet_draw(concentration: float, labels: int) -> None:
    drawn = mixes(concentration, labels)
    share = stats.beta(concentration, (labels - 1) * concentration)
    for one in (drawn[0], drawn[-1]):
        assert stats.kstest(one, share.cdf).pvalue > 0.001
    assert drawn.mean(axis=1) == pytest.approx(1 / labels, abs=5 * share.std() / MANY**0.5)


@pytest.mark.parametrize("concentration", [0.05, 0.3, 1.0, 2.5])
def test_shares_are_independent_but_for_their_sum(concentration: float) -> None:
    """The sum of two labels is Beta distributed again, and does not say how they divide it."""
    drawn = mixes(concentration, 6)
    together = drawn[1] + drawn[4]
    assert stats.kstest(together, stats.beta(2 * concentration, 4 * concentration).cdf).pvalue > 0.001
    some = together > 1e-12
    part = drawn[1][some] / together[some]
    if concentration > 0.1:  # else parts are 0 or 1 to a float
        assert stats.kstest(part, stats.beta(concentration, concentration).cdf).pvalue > 0.001
    assert abs(stats.spearmanr(part, together[some]).statistic) < 0.06
    covariance = -(1 / 36) / (6 * concentration + 1)
    assert np.cov(drawn[0], drawn[3])[0, 1] == pytest.approx(covariance, abs=0.15 * abs(covariance) + 0.001)


def test_gamma_variables_of_rounds_services_and_clients_are_independent() -> None:
    one, two = mixes(0.5)[0], mixes(0.5, round_=2)[0]
    assert abs(stats.spearmanr(one, two).statistic) < 0.06
    assert abs(stats.spearmanr(one[1:], one[:-1]).statistic) < 0.06
    assert abs(stats.spearmanr(one, label_mixes(KEY, 0.5, 10, 1, 1, np.arange(MANY))[0]).statistic) < 0.06


@pytest.mark.parametrize("concentration", [LEAST, 0.3, 1.0, 7.0, MOST])
def test_a_mix_is_the_same_whatever_is_drawn_with_it(concentration: float) -> None:
    keys = draw_key(np.array([3, 4]), "labels")[:, None, None]
    rounds, clients = np.array([[1], [8]]), np.array([5, 6, 70_000])
    together = label_mixes(keys, concentration, 10, rounds, 2, clients)
    assert together.shape == (10, 2, 2, 3)
    assert np.isfinite(together).all()
    assert together.sum(axis=0) == pytest.approx(1.0)
    for i, seed in enumerate((3, 4)):
        alone = label_mixes(draw_key(seed, "labels"), concentration, 10, 8, 2, 6)
        assert together[:, i, 1, 1].tolist() == alone.tolist()


@pytest.mark.parametrize(
    ("concentration", "digest"),
    [(0.001, "ab52c1a98db187d1"), (0.1, "916f62dc2ffe0a0c"), (1.0, "fba47055ae49951f"), (30.0, "cd9d97bb29d73d43")],
)
def test_known_bytes(concentration: float, digest: str) -> None:
    """Seed 0 must mean for ever what it means today, on every machine."""
    drawn = label_mixes(draw_key(0, "labels"), concentration, 10, 1, 0, np.arange(3000))
    assert hashlib.sha256(drawn.astype("<f8").tobytes()).hexdigest()[:16] == digest


@given(
    sizes=st.lists(st.integers(1, 1_000_000), min_size=1, max_size=5),
    labels=st.integers(2, 60),
    concentration=st.sampled_from([LEAST, 0.01, 0.1, 0.5, 1.0, 10.0, 1e4, MOST]),
    round_=st.integers(0, 2**32 - 1),
)
def test_counts_are_whole_add_up_and_lie_within_one_of_the_shares(
    sizes: list[int], labels: int, concentration: float, round_: int
) -> None:
    size = np.array(sizes)
    shares = label_mixes(KEY, concentration, labels, round_, 0, np.arange(len(sizes)))
    counts = mixed_counts(size, shares)
    assert (counts >= 0).all()
    assert (counts.sum(axis=0) == size).all()
    assert (np.abs(counts - size * shares) < 1 + 1e-6).all()
    found = counted_emd(counts)
    assert found == pytest.approx([emd(own) for own in counts.T], abs=1e-12)
    assert ((found >= 0) & (found <= largest_emd(labels))).all()


def test_what_is_left_goes_to_the_largest_remainders_and_of_equal_ones_to_the_first() -> None:
    shares = np.array([[0.26, 0.25, 1.0], [0.26, 0.25, 0.0], [0.19, 0.25, 0.0], [0.29, 0.25, 0.0]])
    counts = mixed_counts(np.array([10, 6, 7]), shares)
    assert counts.T.tolist() == [[3, 2, 2, 3], [2, 2, 1, 1], [7, 0, 0, 0]]


@pytest.mark.parametrize("labels", [2, 3, 7, 10, 49])
def test_one_label_alone_has_the_largest_emd_and_no_more(labels: int) -> None:
    """Behaviours refuse a larger one, be it by a last bit."""
    counts = np.zeros((labels, 3), dtype=np.int64)
    counts[1] = 1, 30, 977
    assert counted_emd(counts) == pytest.approx(largest_emd(labels))
    assert (counted_emd(counts) <= largest_emd(labels)).all()


def mean_emd(concentration: float, labels: int) -> float:
    """Return the mean EMD of such label distributions; that of data sets is larger, the fewer images they have.

    A share has the distribution Beta(a, (L - 1) a), whose mean deviation is known: Johnson, Kotz and Balakrishnan,
    "Continuous univariate distributions", volume 2, 1995, section 25.3.
    """
    a, b = concentration, (labels - 1) * concentration
    beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return 2.0 * labels * math.exp(a * math.log(a) + b * math.log(b) - beta - (a + b + 1.0) * math.log(a + b))


@pytest.mark.parametrize("concentration", [0.01, 0.3, 1.0, 5.0, 1000.0])
def test_the_mean_emd_is_that_of_large_data_sets(concentration: float) -> None:
    found = counted_emd(mixed_counts(np.full(MANY, 100_000), mixes(concentration)))
    assert found.mean() == pytest.approx(mean_emd(concentration, 10), abs=4 * found.std() / MANY**0.5 + 1e-4)
