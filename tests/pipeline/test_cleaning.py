"""Texts of sources become plain, and nothing that an author wrote is lost."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cleaning import clean_text, clean_texts, text_or_none, unescaped, whole_number

#: Pieces that make trouble where they meet.
WORDS = (
    "< > </ /> <i> </i> <jats:p> <br/> <mml:mo> & ; &lt; &amp; &#38; amp; lt; i> b x 1 \" ' = <!-- --> <![CDATA[ ]]> e "
    "\u0301 \u200d \u200c \u00ad \ud800 \x07 \x93 é İ 中 $\\alpha$ <title>Abstract</title> &nbsp;"
)
PIECES = st.sampled_from([*WORDS.split(" "), " ", "\n", "\x1d"])


@pytest.mark.parametrize(
    "text",
    [
        "p<0.05",
        "x < y",
        "x<y and y>z",
        "if x<i and i>y",
        "A&B, R&D, AT&T;",
        r"$\alpha < \beta$ and $$a_{i} > b^2$$",
        "the bra <i|H|j>",
        "vector<T> and <S>",
        "5 < x > 3",
        "E-mail <a.b@c.org>, see <http://a.org/?id=1&region=2&copy=3>",
        "C++ & C#",
        "0",
        "Null results",
        "None of the above",
        "深度学习:一种方法",
        "می\u200cنویسم",  # the joiner is a matter of spelling in Persian
        "👩\u200d💻",
    ],
)
def test_what_an_author_wrote_stays(text):
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("<i>in vivo</i>", "in vivo"),
        ("<jats:p>H<jats:sub>2</jats:sub>O</jats:p>", "H2O"),
        ("<p>One.</p><p>Two.</p>", "One. Two."),
        ("One<br/>two<BR>three", "One two three"),
        ("<a href='x>y'>link</a>", "link"),
        ('<span style="color: red;">red</span>', "red"),
        ("<ns4:p>F1000</ns4:p>", "F1000"),
        ("<ce:title>T</ce:title>", "T"),
        ("<![CDATA[raw]]> <!-- gone -->", "raw"),
        ("<mml:math><mml:mi>x</mml:mi><mml:mo>&lt;</mml:mo><mml:mn>3</mml:mn></mml:math>", "x<3"),
        ("<math><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>", "x2"),
        ("<jats:title>Abstract</jats:title><jats:p>We do.</jats:p>", "We do."),
        ("<title>Abstract:</title><p>We do.</p>", "We do."),
        ("<jats:p>Abstract. We do.</jats:p>", "We do."),
        ("<jats:sec><jats:title>Methods</jats:title><jats:p>We do.</jats:p></jats:sec>", "Methods We do."),
        (r"\documentclass[12pt]{minimal}\usepackage{amsmath}\begin{document}$$\alpha$$\end{document}", r"$$\alpha$$"),
    ],
)
def test_markup_goes(marked, plain):
    assert clean_text(marked) == plain


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        ("&lt;0.001", "<0.001"),
        ("p &lt; 0.05 &amp; q &gt; 3", "p < 0.05 & q > 3"),
        ("AT&amp;T", "AT&T"),
        ("AT&amp;amp;amp;T; or", "AT&T; or"),
        ("&amp;lt;i&amp;gt;in vitro&amp;lt;/i&amp;gt;", "in vitro"),
        ("caf&eacute; &#233; &#xE9;", "café é é"),
        ("a&nbsp;b&thinsp;c", "a b c"),
        ("&unknown; stays", "&unknown; stays"),
        ("it\x92s \x93so\x94\x85", "it\u2019s “so”…"),  # Windows-1252 read as Latin-1
    ],
)
def test_entities_and_misread_letters_become_characters(escaped, plain):
    assert clean_text(escaped) == plain


def test_white_space_control_characters_and_invisible_ones_go():
    assert clean_text("  a \n\t b\u00a0c\u2009d\u2028e\x1df ") == "a b c d e f"
    assert clean_text("com\u00adpu\u200bter\ufeff\u2062 \x00\x19a\u200cb\u202e") == "computer ab"


def test_characters_have_one_form():
    assert clean_text("e\u0301") == "\u00e9"
    assert clean_text("e\ud800\u0301") == "\u00e9"  # half an emoji between them


@pytest.mark.parametrize(
    "text",
    [None, 3, 0.5, True, ["a"], {}, "", " ", "<p></p>", "N/A", "none", "NaN", "[No abstract available]", "No title."],
)
def test_what_is_no_text_or_says_that_there_is_none_is_empty(text):
    assert clean_text(text) == ""
    assert text_or_none(text) is None


@given(st.one_of(st.text(), st.lists(PIECES, max_size=14).map("".join)))
def test_any_text_becomes_plain_and_stays_as_it_is(text):
    plain = clean_text(text)
    assert clean_text(plain) == plain == " ".join(plain.split()) == unicodedata.normalize("NFC", plain)
    assert not re.search(r"</?(?:i|br|jats:p|mml:mo)/?>|&(?:lt|amp|nbsp);", plain)
    plain.encode()


@given(st.text(st.sampled_from("abc xyz.,-+=()[]{}$\\^_%é中0123456789"), min_size=1))
def test_a_text_without_markup_only_loses_white_space(text):
    assert clean_text(text) == " ".join(text.split())


def test_repeated_and_empty_texts_of_a_list_go():
    assert clean_texts(["b", " b ", "", None, 3, "<i>a</i>", "N/A"]) == ("b", "a")
    assert clean_texts(None) == clean_texts("text") == clean_texts({"a": 1}) == ()


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), ("3", 3), (" 12 ", 12), ("-1", -1), ("0", 0), (0, 0)]
    + [(value, None) for value in (None, True, "", "3.5", 3.5, "1,000", "٣", "12a", "9" * 5000, [3])],
)
def test_numbers_come_as_numbers_or_texts(value, number):
    assert whole_number(value) == number


def test_entities_of_an_identifier_become_characters_without_its_brackets_being_read_as_a_tag():
    assert unescaped("(SICI)17:15&lt;1661::AID&amp;gt;3.0") == "(SICI)17:15<1661::AID>3.0"


def texts(value):
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(part)


def test_real_records_hold_no_markup_and_change_no_more(shared_responses):
    bodies = [path for path in sorted(shared_responses.glob("*/*.json")) if path.parent.name != "llm"]
    dirty = 0
    for path in bodies:
        try:
            answer = json.loads(path.read_bytes())
        except ValueError:
            continue  # meant to be broken
        for text in texts(answer):
            plain = clean_text(text)
            dirty += plain != text
            assert clean_text(plain) == plain
            assert not re.search(r"</?(?:jats:|mml:)?(?:p|i|b|sub|sup|title|italic|math)>|&\w+;", plain), path
            assert all(c.isprintable() for c in plain), path
    assert dirty > 100


def test_real_titles_and_abstracts_with_markup(shared_responses):
    body = json.loads((shared_responses / "crossref" / "works_odd_records.json").read_bytes())
    abstracts = [clean_text(item["abstract"]) for item in body["message"]["items"] if item.get("abstract")]
    assert abstracts
    assert all("jats" not in abstract for abstract in abstracts)
    assert not any(re.match("abstract", abstract, re.IGNORECASE) for abstract in abstracts)


def test_marks_piled_on_a_letter_are_cut():
    assert len(clean_text("a" + "\u0300\u0320" * 50_000)) <= 31
    assert clean_text("e\u0301") == "é"


def test_a_number_that_is_none_is_unknown():
    assert (whole_number(10**15 - 1), whole_number(10**15), whole_number(-(10**400))) == (10**15 - 1, None, None)
