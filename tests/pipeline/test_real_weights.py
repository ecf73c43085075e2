"""The pinned MPNet weights give the vectors that sentence-transformers gives, and sensible neighbours."""

import numpy as np
import pytest

from conftest import ROOT
from experiments.models import registered_models
from pipeline.embedding import cosines, embed
from pipeline.encoding import Encoder
from pipeline.models import damaged_files

TEXTS = [
    "Learning System for Flutter Programming",
    "An exercise-based self-learning system for cross-platform mobile programming with Dart",
    "Flutter speed prediction of aircraft wings by deep learning",
    "Restorative justice conferencing in juvenile courts",
]


@pytest.fixture(scope="module")
def mpnet():
    found = registered_models()["mpnet"]
    model = type(found)(**{**vars(found), "folder": ROOT / found.folder})
    if not model.location.exists():
        pytest.skip("the weights of mpnet are not here; make test fetches them")
    return model


def test_the_weights_are_whole(mpnet):
    assert damaged_files(mpnet) == []


def test_vectors_equal_those_of_sentence_transformers(mpnet, tmp_path):
    from sentence_transformers import SentenceTransformer

    ours = embed(TEXTS, Encoder(model=mpnet, store=tmp_path / "v.sqlite", max_tokens=384))
    vectors = [ours[text].values for text in TEXTS]
    np.testing.assert_allclose(vectors, SentenceTransformer(str(mpnet.location)).encode(TEXTS), atol=1e-5)
    similar = cosines(vectors[0], vectors)
    assert similar[0] == pytest.approx(1, abs=1e-6)
    assert similar[1] > similar[2] > similar[3]
