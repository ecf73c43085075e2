"""Gwet's AC2: against irrCAC, against hand computation, on published agreement, and at every edge of irrCAC."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from irrCAC.raw import CAC

from experiments.metrics import Depths, GradedRanking
from experiments.metrics.agreement import gwet_ac2, gwet_ac2_batch, measure

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
pytestmark = pytest.mark.filterwarnings("error")  # irrCAC and scipy warn where they go astray
NAN = float("nan")
Table = npt.NDArray[np.float64]


def irr_cac(table: Table, categories: list[int]) -> float:
    result = CAC(pd.DataFrame(table), weights="linear", categories=categories, digits=12).gwet()
    return float(result["est"]["coefficient_value"])


def random_tables(count: int) -> list[Table]:
    """Two to four raters, some grades that never occur, and missing ratings in every second table."""
    random = np.random.default_rng(20261130)
    tables = []
    for i in range(count):
        occurring = random.choice(4, size=random.integers(1, 5), replace=False)
        table = random.choice(occurring, size=(random.integers(2, 40), random.integers(2, 5))).astype(np.float64)
        if i % 2:
            table[random.random(table.shape) < 0.25] = NAN
        if (np.count_nonzero(~np.isnan(table), axis=1) >= 2).sum() >= 2:
            tables.append(table)
    return tables


def test_two_raters_by_hand() -> None:
    # Pairs (0,0) (1,2) (3,3) (2,0); weights 1 - |i-j|/3: observed (1 + 2/3 + 1 + 1/3) / 4 = 3/4.
    # Shares of grades 0..3: 3/8 1/8 2/8 2/8; sum of p(1-p) = (15 + 7 + 12 + 12) / 64 = 46/64.
    # Sum of all weights 4 + 6 * 2/3 + 4 * 1/3 + 2 * 0 = 28/3; expected 28/3 / 12 * 46/64 = 161/288.
    assert gwet_ac2([[0, 0], [1, 2], [3, 3], [2, 0]]) == pytest.approx((3 / 4 - 161 / 288) / (1 - 161 / 288), abs=1e-12)


def test_three_raters_and_missing_ratings_by_hand() -> None:
    # Item 1: grades 3 3 2, pairs 1, 2/3, 2/3: 7/9. Item 2: 0 - 1, one pair 2/3. Item 3: one rating, no pair.
    # Observed (7/9 + 2/3) / 2 = 13/18. Shares: 0: (1/2)/3, 1: (1/2)/3, 2: (1/3)/3, 3: (2/3 + 1)/3 = 1/6 1/6 1/9 5/9.
    # Sum of p(1-p) = 5/36 + 5/36 + 8/81 + 20/81 = 101/162; expected 7/9 * 101/162.
    expected = 7 / 9 * 101 / 162
    table = np.array([[3, 3, 2], [0, NAN, 1], [NAN, 3, NAN]])
    assert gwet_ac2(table) == pytest.approx((13 / 18 - expected) / (1 - expected), abs=1e-12)


def test_equals_irrcac_on_random_tables_with_unobserved_categories_and_missing_ratings() -> None:
    for table in random_tables(200):
        rated = table[~np.isnan(table).all(axis=1)]
        assert gwet_ac2(table) == pytest.approx(irr_cac(rated, [0, 1, 2, 3]), abs=1e-12)


def test_batch_equals_irrcac_on_random_tables() -> None:
    for table in random_tables(200):
        rated = table[~np.isnan(table).all(axis=1)]
        assert float(gwet_ac2_batch(table)) == pytest.approx(irr_cac(rated, [0, 1, 2, 3]), abs=1e-11)


def test_batch_is_vectorised_over_all_leading_axes() -> None:
    tables = np.random.default_rng(7).integers(0, 4, size=(5, 6, 10, 2)).astype(np.float64)
    tables[0, 0, :3, 1] = NAN
    batch = gwet_ac2_batch(tables)
    assert batch.shape == (5, 6)
    for i in range(5):
        for j in range(6):
            assert batch[i, j] == pytest.approx(gwet_ac2(tables[i, j]), abs=1e-11)


def test_unobserved_category_still_counts_for_the_weights() -> None:
    table = np.array([[0, 0], [1, 1], [2, 1], [2, 2], [0, 1]], dtype=np.float64)
    assert gwet_ac2(table) == pytest.approx(irr_cac(table, [0, 1, 2, 3]))
    assert gwet_ac2(table) != pytest.approx(irr_cac(table, [0, 1, 2]), abs=0.01)


def test_categories_reach_irrcac_in_ascending_order() -> None:
    table = np.array([[0, 0], [1, 1], [2, 1], [2, 3], [0, 1]], dtype=np.float64)
    assert irr_cac(table, [1, 0, 3, 2]) != pytest.approx(irr_cac(table, [0, 1, 2, 3]), abs=0.01)  # the trap is there
    assert gwet_ac2(table) == pytest.approx(irr_cac(table, [0, 1, 2, 3]))


def test_value_is_not_rounded_to_five_decimals() -> None:
    value = gwet_ac2([[0, 0], [1, 2], [3, 3], [2, 0]])
    assert value is not None
    assert abs(value - round(value, 5)) > 1e-7


@pytest.mark.parametrize("grade", [0, 1, 2, 3])
def test_identical_ratings_agree_perfectly(grade: int) -> None:
    assert gwet_ac2([[grade, grade]] * 10) == 1.0
    assert float(gwet_ac2_batch([[grade, grade]] * 10)) == 1.0


def test_varied_perfect_agreement_is_1() -> None:
    assert gwet_ac2([[0, 0], [1, 1], [2, 2], [3, 3]]) == pytest.approx(1.0)


def test_opposite_ratings_are_below_chance() -> None:
    # Observed 0; shares 1/2 and 1/2: expected 7/9 * 1/2 = 7/18; (0 - 7/18) / (11/18).
    assert gwet_ac2([[0, 3], [3, 0]]) == pytest.approx(-7 / 11)


def test_one_item_where_irrcac_divides_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        irr_cac(np.array([[2.0, 3.0]]), [0, 1, 2, 3])
    # Observed 2/3; shares 1/2, 1/2: expected 7/18; (12/18 - 7/18) / (11/18) = 5/11.
    assert gwet_ac2([[2, 3]]) == pytest.approx(5 / 11)
    assert gwet_ac2([[2, 2]]) == 1.0
    assert gwet_ac2(np.array([[2, 3], [NAN, NAN]])) == pytest.approx(5 / 11)


@pytest.mark.parametrize(
    "table",
    [
        np.empty((0, 2)),
        np.full((3, 2), NAN),
        np.array([[1.0], [2.0]]),
        np.array([[1.0, NAN], [NAN, 2.0]]),
    ],
    ids=["no item", "no rating", "one rater", "no item rated twice"],
)
def test_nothing_rateable_is_none_or_nan(table: Table) -> None:
    assert gwet_ac2(table) is None
    assert np.isnan(gwet_ac2_batch(table))


def test_item_without_a_rating_changes_nothing() -> None:
    table = [[0.0, 0.0], [1.0, 2.0], [3.0, 3.0]]
    assert gwet_ac2([*table, [NAN, NAN]]) == gwet_ac2(table)
    assert gwet_ac2_batch([*table, [NAN, NAN]]) == gwet_ac2_batch(table)


@pytest.mark.parametrize("rating", [4.0, -1.0, 1.5, float("inf")])
def test_rating_outside_the_grades_is_refused(rating: float) -> None:
    with pytest.raises(ValueError, match=f"rating {rating:g} is not a grade"):
        gwet_ac2(np.array([[0, 0], [rating, 2]]))
    with pytest.raises(ValueError, match="is not a grade"):
        gwet_ac2_batch(np.array([[[0, 0], [rating, 2]]]))


def test_inputs_are_not_changed() -> None:
    table = np.array([[0, NAN], [1, 2], [3, 3], [NAN, NAN]])
    before = table.copy()
    gwet_ac2(table)
    gwet_ac2_batch(table)
    np.testing.assert_array_equal(table, before)


def ranking(categories: list[float] | None, grades: list[int]) -> GradedRanking:
    return GradedRanking(
        grades=np.array(grades, dtype=np.int64),
        is_judged=np.ones(len(grades), dtype=np.bool_),
        categories=None if categories is None else np.array(categories, dtype=np.float64),
        judged=np.array(sorted(grades, reverse=True), dtype=np.int64),
    )


def test_ac2_compares_category_and_judgment_over_the_top_only() -> None:
    same_in_the_top_three = ranking([3, 1, 0, 0, 0], [3, 1, 0, 3, 3])
    assert measure(same_in_the_top_three, Depths(evaluate=3, recall=()))["ac2"] == pytest.approx(1.0)
    by_hand = gwet_ac2([[3, 3], [1, 1], [0, 0], [0, 3]])
    assert measure(same_in_the_top_three, Depths(evaluate=4, recall=()))["ac2"] == by_hand


def test_ac2_of_an_arm_that_gave_no_paper_a_category_is_none() -> None:
    assert measure(ranking([NAN, NAN], [3, 1]), Depths(evaluate=10, recall=()))["ac2"] is None


def read_annotations(collection: str) -> dict[str, list[Table]]:
    """Query id -> one row of grades a paper, the raters in the order of the file (AC2 does not tell raters apart)."""
    path = DATA / collection / "annotations.csv"
    if not path.exists():
        pytest.skip(f"the collection {collection} is not at {path}")
    items: dict[str, dict[str, list[float]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            grades = items.setdefault(row["query_id"], {}).setdefault(row["paper_id"], [])
            grades.append(float(row["grade"]))
    width = max(len(grades) for papers in items.values() for grades in papers.values())
    return {
        query_id: [np.array(grades + [NAN] * (width - len(grades))) for grades in papers.values()]
        for query_id, papers in items.items()
    }


def test_agreement_of_the_raters_of_csfcube_is_as_published() -> None:
    queries = read_annotations("csfcube")
    values = [gwet_ac2(np.array(items)) for items in queries.values()]
    assert gwet_ac2(np.array([item for items in queries.values() for item in items])) == pytest.approx(0.759, abs=5e-4)
    assert None not in values
    assert np.mean([value for value in values if value is not None]) == pytest.approx(0.730, abs=5e-4)
    assert round(values[0] or 0, 3) == 0.830  # 10014168-background


def test_agreement_on_a_scale_of_three_categories_is_not_comparable_with_ac2_of_grades() -> None:
    """The raters of cystic_fibrosis gave 0..2, where 2 is the best there is.

    Its published 0.410 is over three categories: 0 against 2 is total disagreement there (weight 0), while on the scale
    of grades it is two steps of three (weight 1/3), and chance agreement is spread over a fourth category that
    nobody could give. The grades here are 0..3, so the two figures measure different things and have no place in one
    table; a parameter for the number of categories would only hide that.
    """
    items = np.array([item for items in read_annotations("cystic_fibrosis").values() for item in items])
    assert items.shape == (3040, 4)
    assert irr_cac(items, [0, 1, 2]) == pytest.approx(0.410, abs=5e-4)
    assert gwet_ac2(items) != pytest.approx(0.410, abs=0.1)
