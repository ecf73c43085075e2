"""Tables in three forms, with what would break them escaped."""

import csv

from experiments.tables import latex, markdown, write_csv


def test_markdown_is_aligned_and_a_bar_cannot_split_a_cell():
    assert markdown(["area", "x"], [["a|b", "0.5"], ["c\nd", "—"]]).splitlines() == [
        r"| area | x   |",
        r"|------|-----|",
        r"| a\|b | 0.5 |",
        r"| c d  | —   |",
    ]


def test_latex_escapes_special_characters():
    text = latex(["area", "bm25_mpnet"], [["R&D 100%", "0.5 ± 0.1 *"], ["x", "—"]])
    assert r"area & bm25\_mpnet \\" in text
    assert r"R\&D 100\% & 0.5 $\pm$ 0.1 * \\" in text
    assert r"x & --- \\" in text


def test_csv_keeps_commas_quotes_and_missing_values(tmp_path):
    write_csv(tmp_path / "t.csv", ["a", "b"], [['say "x", y', None], ["é", 0.1]])
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], ['say "x", y', ""], ["é", "0.1"]]
