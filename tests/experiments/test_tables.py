"""Tables in three forms, with what would break them escaped."""

import csv

from experiments.tables import latex, markdown, read_csv, signed, write_csv


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


def test_a_csv_runs_no_formula_and_is_read_back_as_it_was(tmp_path):
    texts = ["=1+1", "+x", "-x", "@x", "\t=1", "\r=1", "'=1", "''+x", "'quoted'", "-0.5", "1e-9", "plain", ""]
    write_csv(tmp_path / "t.csv", ["=a", "n"], [[text, -1.5] for text in texts])
    assert [row["=a"] for row in read_csv(tmp_path / "t.csv")] == [text.replace("\r", "\n") for text in texts]
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert (header[0], {row[1] for row in rows}) == ("'=a", {"-1.5"})
    cells = [row[0] for row in rows]
    assert cells[:6] == ["'=1+1", "'+x", "'-x", "'@x", "'\t=1", "'\n=1"]
    assert cells[8:] == ["'quoted'", "-0.5", "1e-9", "plain", ""]  # a number is none


def test_nothing_is_never_minus_nothing():
    assert [signed(value) for value in (-0.0001, 0.0, 0.0126, -0.2)] == ["+0.000", "+0.000", "+0.013", "-0.200"]
