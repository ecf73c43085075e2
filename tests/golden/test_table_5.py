"""The paper's table 5: reputation and score of six of twelve papers, to four digits."""

import numpy as np
import pytest

from pipeline.scoring import Weights, final_score, reputation

# (citations, impact factor, STS, R, S); minima and maxima over all twelve papers: citations 1 to 161, JIF 0 to 9.4
ROWS = [
    (21, 0.0, 0.981, 0.0750, 0.9922),
    (13, 4.5, 0.861, 0.2365, 0.8965),
    (14, 0.0, 0.851, 0.0488, 0.8583),
    (1, 4.5, 0.681, 0.1915, 0.7097),
    (8, 0.0, 0.695, 0.0263, 0.6989),
    (142, 9.4, 0.530, 0.9287, 0.6693),
]
MOST_CITED = (161, np.nan)  # one of the six papers that the table leaves out; its impact factor does not matter here

HALF_A_DIGIT = 0.5e-4 + 1e-12  # 0.02625 and 0.92875 lie right between two four-digit numbers


def test_reputation_and_score_of_table_5():
    citations, impact_factors = np.array([*(row[:2] for row in ROWS), MOST_CITED]).T
    found = reputation(citations, impact_factors, Weights())[: len(ROWS)]
    assert found.tolist() == pytest.approx([row[3] for row in ROWS], abs=HALF_A_DIGIT)
    scores = final_score(np.array([row[2] for row in ROWS]), found, Weights().alpha)
    assert scores.tolist() == pytest.approx([row[4] for row in ROWS], abs=HALF_A_DIGIT)
