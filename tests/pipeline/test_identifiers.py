"""One spelling for each DOI, arXiv id and ISSN."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.identifiers import arxiv_doi, arxiv_id, join_issns, normalize_doi, normalize_issn, work_doi


@pytest.mark.parametrize(
    "spelling",
    [
        "10.48550/arxiv.2101.00001",
        "10.48550/ARXIV.2101.00001",
        "https://doi.org/10.48550/arXiv.2101.00001",
        "http://dx.doi.org/10.48550/arXiv.2101.00001",
        "doi:10.48550/arXiv.2101.00001",
        "10.48550/arXiv.2101.00001.",
        "10.48550%2FarXiv.2101.00001",
        "https://doi.org/10.48550%252FarXiv.2101.00001",
        "10.48550/arXiv.2101.00001v2",
        " 10.48550/arXiv.2101.00001\u200b ",
        "DOI: 10.48550/arXiv.2101.00001",
        "(10.48550/arXiv.2101.00001)",
        "<https://doi.org/10.48550/arXiv.2101.00001>.",
        "“10.48550/arXiv.2101.00001”",
    ],
)
def test_all_spellings_of_a_doi_are_one(spelling):
    assert normalize_doi(spelling) == "10.48550/arxiv.2101.00001"


SICI = "10.1002/(sici)1097-0258(19980815/30)17:15/16<1661::aid-sim968>3.0.co;2-2"


@pytest.mark.parametrize(
    "spelling",
    [
        "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2",
        "10.1002/(SICI)1097-0258(19980815/30)17:15/16&lt;1661::AID-SIM968&gt;3.0.CO;2-2",
        "https://doi.org/10.1002/(SICI)1097-0258(19980815/30)17:15/16%3C1661::AID-SIM968%3E3.0.CO;2-2",
        "https://doi.org/10.1002%2F%28SICI%291097-0258%2819980815%2F30%2917%3A15%2F16%3C1661%3A%3AAID-SIM968%3E3.0.CO%3B2-2",
    ],
)
def test_a_doi_with_brackets_colons_and_semicolons_survives(spelling):
    assert normalize_doi(spelling) == SICI


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1016/S0140-6736(20)30183-5", "10.1016/s0140-6736(20)30183-5"),
        ("10.1016/s0140-6736(20)30183-5).", "10.1016/s0140-6736(20)30183-5"),
        ("[10.1000/a(b)]", "10.1000/a(b)"),
        ("10.1000/a)].", "10.1000/a"),
        ("10.1002/asi.10001;2-#", "10.1002/asi.10001;2-#"),
        ("10.1000.10/123", "10.1000.10/123"),
        ("10.1103/PhysRevA.1.1 10.1103/PhysRevB.2.2", "10.1103/physreva.1.1"),
        ("10.1016/j.x (in press)", "10.1016/j.x"),
    ],
)
def test_only_a_bracket_that_closes_nothing_goes(text, doi):
    assert normalize_doi(text) == doi


@pytest.mark.parametrize(
    ("version", "bare"),
    [
        ("10.1101/2020.06.11.145425v3", "10.1101/2020.06.11.145425"),
        ("10.1101/012345v1", "10.1101/012345"),
        ("10.64898/2026.08.01.123456v1", "10.64898/2026.08.01.123456"),
        ("10.31234/osf.io/ab3de_v2", "10.31234/osf.io/ab3de"),
        ("10.31219/osf.io/egcsk_v10", "10.31219/osf.io/egcsk"),
        ("10.48550/arXiv.math/0211159v1", "10.48550/arxiv.math/0211159"),
    ],
)
def test_versions_of_a_preprint_are_one(version, bare):
    assert normalize_doi(version) == bare
    assert normalize_doi(bare) == bare


@pytest.mark.parametrize(
    ("versions", "common"),
    [
        (["10.21203/rs.3.rs-1234/v1", "10.21203/rs.3.rs-1234/v12"], "10.21203/rs.3.rs-1234"),
        (["10.21203/rs.2.100/v1"], "10.21203/rs.2.100"),
        (["10.20944/preprints202001.0001.v1", "10.20944/preprints202001.0001.v2"], "10.20944/preprints202001.0001"),
        (["10.26434/chemrxiv-2021-abcd", "10.26434/chemrxiv-2021-abcd-v2"], "10.26434/chemrxiv-2021-abcd"),
    ],
)
def test_versions_with_dois_of_their_own_keep_them_and_have_one_in_common(versions, common):
    assert [normalize_doi(version) for version in versions] == versions
    assert {work_doi(version) for version in versions} == {common}


@pytest.mark.parametrize(
    "doi", ["10.1000/rain.7", "10.1000/motor/v8", "10.31234/osf.io/gprv2", "10.21203/rs.3.rs-1234", "10.26434/other-v2"]
)
def test_any_other_doi_is_that_of_its_work(doi):
    assert work_doi(doi) == doi


def test_five_layers_of_encoding_are_taken_off_and_no_more():
    assert normalize_doi("10.1000%252525252Fabc") == "10.1000/abc"  # %25 is a percent sign: %2F under four of them
    assert normalize_doi("10.1000%25252525252Fabc") is None


def test_a_doi_is_looked_for_in_the_first_two_thousand_characters():
    assert normalize_doi("x" * 1_980 + " 10.1000/abc") == "10.1000/abc"
    assert normalize_doi("x" * 2_000 + " 10.1000/abc") is None
    assert len(normalize_doi("10.1000/" + "a" * 1_000_000) or "") <= 2_000


@pytest.mark.parametrize("doi", ["10.31234/osf.io/gprv2", "10.1000/motorv8", "10.1101/gr.123v4", "10.1016/j.v1"])
def test_what_only_looks_like_a_version_stays(doi):
    assert normalize_doi(doi) == doi


@pytest.mark.parametrize(
    "text", [None, 10.1, "", "NA", "10.1000/", "10.1000/).", "10.12/abc", "110.1000/abc", "abc", []]
)
def test_what_is_no_doi_is_none(text):
    assert normalize_doi(text) is None


@given(st.text(st.sampled_from("10./()[]{}<>%2Fv_.,;:'\"a \u200b&lt"), max_size=30).map("10.1234/".__add__))
def test_a_doi_in_its_one_spelling_stays(text):
    doi = normalize_doi(text)
    assert doi is None or (normalize_doi(doi) == doi == doi.lower() and doi.startswith("10.") and not doi.endswith("."))


@given(st.text())
def test_any_text_may_be_asked_for_a_doi(text):
    assert normalize_doi(text) is None or "/" in normalize_doi(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2101.00001", ("2101.00001", None)),
        ("0704.0001v12", ("0704.0001", 12)),
        ("http://arxiv.org/abs/cs/0503050v1", ("cs/0503050", 1)),
        ("https://export.arxiv.org/pdf/2101.00001v2.pdf", ("2101.00001", 2)),
        ("math.GT/0309136", ("math.GT/0309136", None)),
        ("arXiv: astro-ph/0601001v1", ("astro-ph/0601001", 1)),
        ("https://arxiv.org/api/errors#incorrect_id_format_for_abc", None),
        ("10.1000/2101.00001", None),
        ("2101.1", None),
        ("", None),
        (None, None),
    ],
)
def test_an_arxiv_id_is_told_from_its_version(text, expected):
    assert arxiv_id(text) == expected


def test_the_doi_of_an_arxiv_id_is_in_lower_case():
    assert (
        arxiv_doi("math.GT/0309136") == "10.48550/arxiv.math.gt/0309136" == normalize_doi(arxiv_doi("math.GT/0309136"))
    )


@pytest.mark.parametrize(
    ("text", "issn"),
    [
        ("0028-0836", "0028-0836"),  # 0*8 + 0*7 + 2*6 + 8*5 + 0*4 + 8*3 + 3*2 + 6*1 = 88 = 8 * 11
        ("00280836", "0028-0836"),
        (" 2511-705x ", "2511-705X"),  # 2*8 + 5*7 + 1*6 + 1*5 + 7*4 + 0*3 + 5*2 + 10*1 = 110 = 10 * 11
        ("0028\u20130836", "0028-0836"),  # a dash for the hyphen
        ("0028-0837", None),
        ("0000-0000", None),
        ("0028-083", None),
        ("٠٠٢٨-٠٨٣٦", None),
        ("9783110750508", None),
        ("", None),
        (None, None),
        (280836, None),
    ],
)
def test_an_issn_needs_its_check_digit(text, issn):
    assert normalize_issn(text) == issn


def test_issns_are_joined_each_once():
    assert join_issns("00280836", None, "1476-4687", "0028-0836", "bad", 3) == "0028-0836, 1476-4687"
    assert join_issns("00280836 14764687; 0028-0836") == "0028-0836, 1476-4687"
    assert join_issns() is join_issns(None, "") is None
