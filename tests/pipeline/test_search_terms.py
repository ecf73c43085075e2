"""Whatever stands in a query, its search holds plain words."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.papers import Query
from pipeline.search_terms import any_of, mentions, search_phrases, search_words

OPERATORS = {"and", "or", "not", "andnot", "near", "same", "to"}


def query(text, *keywords):
    return Query("q", text, keywords=keywords)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Deep Learning for the Detection of Cats", ["deep", "learning", "detection", "cats"]),
        ("cats AND dogs OR NOT (birds) ANDNOT fish NEAR/3 ponds", ["cats", "dogs", "birds", "fish", "3", "ponds"]),
        (
            'ti:"deep learning" + [x TO y] ~2 *?$ {a}/b\\c|d^e',
            ["ti", "deep", "learning", "x", "y", "2", "b", "c", "d", "e"],
        ),
        ("R&D: p<0.05; 50% of $x_1$", ["r", "d", "p", "0", "05", "50", "x", "1"]),
        ("meta-analysis -- of -off- on-", ["meta-analysis", "off"]),
        (
            "Alzheimer's disease, dogs\u2019 homes and 'single words'",
            ["alzheimer", "disease", "dogs", "homes", "single", "words"],
        ),
        ("Über Fußball in İstanbul und Ärzte", ["über", "fußball", "istanbul", "und", "ärzte"]),
        ("Τρόπος ΤΡΟΠΟΣ", ["τρόπος", "τροπος"]),
        ("基于深度学习的方法\uff1a图像\uff08识别\uff09", ["基于深度学习的方法", "图像", "识别"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("\ufb01ne \uff12\uff10\uff12\uff11 cafe\u0301", ["fine", "2021", "café"]),
        ("cats, Cats and CATS", ["cats"]),
        ("to be or not to be", []),
        ("?!: \u0301 -- _", []),
        ("", []),
    ],
)
def test_the_words_of_a_text(text, words):
    assert list(search_words(query(text))) == words


def test_a_search_has_sixteen_words_and_sixteen_phrases_at_most():
    long = query(" ".join(f"w{i}" for i in range(40)), *(f"phrase {i}" for i in range(40)))
    assert search_words(long) == tuple(f"w{i}" for i in range(16))
    assert search_phrases(long) == tuple(f"phrase {i}" for i in range(16))


def test_keywords_become_phrases_unless_they_are_words_of_the_text_or_stop_words():
    asked = query("Detecting cats", 'Image "recognition"', "cats", "NOT", "image recognition", "", "t-SNE", "dogs")
    assert search_phrases(asked) == ("image recognition", "t-sne", "dogs")


def test_any_of_puts_several_words_in_quotes():
    assert any_of(query("Detecting cats", "image recognition")) == 'detecting OR cats OR "image recognition"'
    assert any_of(query("t-SNE of cats"), phrase="<{}>", joined_by=" | ") == "<t-sne> | cats"


def test_a_text_of_stop_words_is_searched_as_a_phrase():
    assert any_of(query("To be OR not to be")) == '"to be or not to be"'
    assert any_of(query("AND")) == '"and"'
    assert any_of(query("?!")) == any_of(query("")) == ""


def test_keywords_alone_are_enough_for_a_search():
    assert any_of(query("of the", "AND", "cats")) == "cats"


ANYTHING = st.text(st.one_of(st.characters(), st.sampled_from("ANDORT ()[]{}\"':*?~^&|!+-/\\<>=,;.%$#@`\u2019“”")))


@given(ANYTHING, st.lists(st.one_of(ANYTHING, st.sampled_from(["AND", "or", "Not", "a b", "NEAR"])), max_size=3))
def test_no_operator_quote_or_bracket_survives(text, keywords):
    asked = query(text, *keywords)
    words, phrases = search_words(asked), search_phrases(asked)
    assert len(words) <= 16
    for term in [*words, *phrases]:
        assert all(c in "- " or c.isalnum() or unicodedata.category(c).startswith("M") for c in term)
        assert term.strip("- ") == term
        assert term.lower() not in OPERATORS
    terms = re.findall(r'"[^"]*"|[^" ]+', any_of(asked))
    assert "".join(terms[1::2]) == "OR" * len(terms[1::2])
    assert not OPERATORS & {term.lower() for term in terms[::2]}


def test_a_paper_mentions_half_of_the_words_or_a_keyword():
    asked = query("Deep learning for the detection of cats", "image recognition", "cats")
    assert mentions(asked, "Deep learning", "a survey")  # two of four words
    assert not mentions(asked, "Detection of dogs")  # one of four
    assert mentions(asked, "On Image\nRecognition")
    assert mentions(asked, "Cats!")  # a keyword, though also a word of the text
    assert not mentions(asked, "Catsuits", "")


def test_a_query_without_words_is_mentioned_nowhere():
    assert not mentions(query("of the"), "of the")
    assert not mentions(query("", "the"), "the")
    assert not mentions(query(""), "")
