"""What each stage adds, keeps and orders."""

import logging

import numpy as np
import pytest
from pydantic import ValidationError

from pipeline.candidates import Candidates
from pipeline.embedding import embed
from pipeline.encoding import Encoder
from pipeline.errors import UserError
from pipeline.models import ModelFiles
from pipeline.papers import Paper, Query
from pipeline.scoring import Score, Weights
from pipeline.stages import bm25, build_stage, cross_encoder, cut, semantic, stage_names

QUERY = Query("q", "flutter learning", keywords=("dart",), domain="Physical Sciences", fields=("Computer Science",))
PAPERS = (
    Paper("p1", "Flutter speed of wings", "Aeroelastic wings and dart boards.", citation_count=9, impact_factor=2.0),
    Paper("p2", "Learning Flutter", "A learning system.", keywords=("dart",), disciplines=("Computer Science",)),
    Paper("p3", "Gardens", ""),
    Paper("p4", "Lawns", "", citation_count=3),
)


def ids(table: Candidates) -> list[str]:
    return [paper.paper_id for paper in table.papers]


@pytest.fixture
def encoder(tiny_models, tmp_path) -> Encoder:
    model = ModelFiles(name="tiny", folder=tmp_path, path=tiny_models["embedder"])
    return Encoder(model=model, store=tmp_path / "v.sqlite", max_tokens=64, device="cpu")


def test_bm25_adds_title_and_abstract_scores():
    (table,) = bm25.Stage()([Candidates(QUERY, PAPERS)])
    assert ids(table)[0] == "p2"
    np.testing.assert_allclose(table.columns["score"], table.columns["bm25_title"] + table.columns["bm25_abstract"])
    assert table.columns["score"].tolist() == sorted(table.columns["score"], reverse=True)


def test_bm25_asks_titles_for_the_text_and_abstracts_for_the_expanded_query():
    (table,) = bm25.Stage()([Candidates(QUERY, PAPERS)])
    row = dict(zip(ids(table), table.rows(), strict=True))
    assert row["p1"]["bm25_abstract"] > 0  # by the keyword "dart" alone
    only_keyword = Candidates(Query("q", "x", keywords=("gardens",)), PAPERS)
    assert bm25.Stage()([only_keyword])[0].columns["bm25_title"].tolist() == [0, 0, 0, 0]


def test_joined_bm25_scores_title_and_abstract_as_one_text():
    from rank_bm25 import BM25Okapi

    (table,) = bm25.Stage(index="joined")([Candidates(QUERY, PAPERS)])
    texts = [f"{paper.title} {paper.abstract}".lower().replace(".", "").split() for paper in PAPERS]
    expected = BM25Okapi(texts).get_scores("flutter learning dart physical sciences computer science".split())
    assert sorted(table.columns["score"]) == pytest.approx(sorted(expected))
    assert "bm25_title" not in table.columns


def test_equal_scores_keep_the_order_and_are_told(caplog):
    query = Query("q7", "?!, ...")
    with caplog.at_level(logging.WARNING):
        (table,) = bm25.Stage()([Candidates(query, PAPERS)])
    assert ids(table) == ["p1", "p2", "p3", "p4"]
    assert "query q7: all BM25 scores are equal" in caplog.text


@pytest.mark.parametrize("papers", [(), PAPERS[2:3], PAPERS[2:]])
def test_bm25_of_little_or_nothing(papers):
    (table,) = bm25.Stage()([Candidates(QUERY, papers)])
    assert table.columns["score"].tolist() == [0.0] * len(papers)


def test_treebank_tokens_keep_punctuation_and_split_contractions():
    from pipeline.tokenizers import treebank, words

    assert treebank("Don't (stop).") == ["do", "n't", "(", "stop", ")", "."]
    assert words("Don't (stop). Größe_1 研究") == ["don", "t", "stop", "größe_1", "研究"]


def test_cut_keeps_the_first_and_does_not_mind_short_tables():
    tables = [Candidates(QUERY, PAPERS), Candidates(QUERY, PAPERS[:1])]
    assert [ids(table) for table in cut.Stage(keep=2)(tables)] == [["p1", "p2"], ["p1"]]


def test_semantic_score_by_hand(encoder):
    stage = semantic.Stage(weights=Weights(), score=Score(), embedder=encoder)
    (table,) = stage([Candidates(QUERY, PAPERS)])
    row = {r["paper_id"]: r for r in table.rows()}
    texts = ["flutter learning", "flutter learning dart Physical Sciences Computer Science", "dart",
             "Physical Sciences, Computer Science", *(p.title for p in PAPERS), PAPERS[0].abstract, PAPERS[1].abstract,
             "Computer Science"]  # fmt: skip
    v = {text: entry.values.astype(float) for text, entry in embed(texts, encoder).items()}
    title = [v[texts[0]] @ v[paper.title] for paper in PAPERS]
    sts = [
        0.55 * title[0] + 0.35 * v[texts[1]] @ v[PAPERS[0].abstract],
        0.55 * title[1] + 0.35 * v[texts[1]] @ v[PAPERS[1].abstract]
        + 0.05 * v["dart"] @ v["dart"] + 0.05 * v[texts[3]] @ v["Computer Science"],
        0.55 * title[2],
        0.55 * title[3],
    ]  # fmt: skip
    reputation = [0.6 * 9 / 9 + 0.4 * 2 / 2, 0, 0, 0.6 * 3 / 9]
    raw = np.array(sts) + 0.15 * np.array(reputation)
    expected = (raw - raw.min()) / (raw.max() - raw.min())
    for i, paper in enumerate(PAPERS):
        assert row[paper.paper_id]["sts"] == pytest.approx(sts[i], abs=1e-6)
        assert row[paper.paper_id]["reputation"] == pytest.approx(reputation[i])
        assert row[paper.paper_id]["score"] == pytest.approx(expected[i], abs=1e-6)
    assert row["p3"]["sts_abstract"] is None  # missing is no value, not a similarity of 0
    assert row["p1"]["sts_keywords"] is None
    assert ids(table) == [PAPERS[i].paper_id for i in np.argsort(-expected, kind="stable")]
    assert table.rows()[0]["initial_category"] == "highly relevant"


def test_a_part_of_weight_zero_is_not_embedded(encoder):
    weights = Weights(title=1.0, abstract=0, keywords=0, disciplines=0)
    (table,) = semantic.Stage(weights=weights, score=Score(), embedder=encoder)([Candidates(QUERY, PAPERS)])
    assert np.isnan(table.columns["sts_abstract"]).all()
    assert not table.columns["abstract_truncated"].any()


def test_one_candidate_gets_score_zero(encoder):
    stage = semantic.Stage(weights=Weights(), score=Score(), embedder=encoder)
    (table,) = stage([Candidates(QUERY, PAPERS[:1])])
    assert table.columns["score"].tolist() == [0.0]


def test_no_candidates_at_all(encoder, tiny_models):
    scorer = Encoder(
        model=ModelFiles(name="ce", folder=encoder.store.parent, path=tiny_models["cross_encoder"]),
        store=encoder.store, max_tokens=64,
    )  # fmt: skip
    for stage in (semantic.Stage(weights=Weights(), score=Score(), embedder=encoder), cross_encoder.Stage(scorer)):
        (table,) = stage([Candidates(QUERY, ())])
        assert len(table) == 0


def test_cross_encoder_orders_by_logit_and_gives_no_category(tiny_models, tmp_path):
    model = ModelFiles(name="ce", folder=tmp_path, path=tiny_models["cross_encoder"])
    stage = cross_encoder.Stage(Encoder(model=model, store=tmp_path / "v.sqlite", max_tokens=64, device="cpu"))
    one, two = stage([Candidates(QUERY, PAPERS), Candidates(Query("r", "gardens"), PAPERS[::-1])])
    for table in (one, two):
        assert table.columns["score"].tolist() == sorted(table.columns["score"], reverse=True)
        assert "initial_category" not in table.columns
    assert one.query.query_id == "q"
    assert set(ids(two)) == {"p1", "p2", "p3", "p4"}


def test_stages_do_not_change_their_inputs(encoder):
    table = Candidates(QUERY, PAPERS)
    for stage in (bm25.Stage(), cut.Stage(1), semantic.Stage(Weights(), Score(), encoder)):
        stage([table])
    assert (table.papers, dict(table.columns)) == (PAPERS, {})


def test_a_stage_is_named_by_its_file():
    assert {"bm25", "cross_encoder", "cut", "semantic"} <= set(stage_names())
    assert build_stage("cut", {"keep": 3}) == cut.Stage(keep=3)
    with pytest.raises(UserError, match=r"unknown stage 'bm52': expected one of .*; did you mean bm25"):
        build_stage("bm52", {})
    with pytest.raises(ValidationError):
        build_stage("cut", {"keep": 0})


def test_ties_keep_their_order():
    table = Candidates(QUERY, PAPERS).with_columns(score=np.array([1.0, 2.0, 1.0, 2.0]))
    assert ids(table.ranked_by("score")) == ["p2", "p4", "p1", "p3"]


def test_a_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match="column score has 1 entries for 4 papers"):
        Candidates(QUERY, PAPERS).with_columns(score=np.array([1.0]))
