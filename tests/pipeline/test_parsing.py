"""What is no answer is told apart from an empty one."""

import copy
import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.papers import Query
from pipeline.parsing import (
    flag,
    listing,
    mapping,
    objects,
    parse_object,
    parse_xml,
    shown,
    values_of,
    web_address,
)
from pipeline.sources import MalformedError
from source_helpers import source

NO_JSON = {
    "empty": b"",
    "white space": b" \n",
    "HTML": b"<!DOCTYPE html><html><body>Bad gateway</body></html>",
    "cut": b'{"total": 3, "results": [{"id": "1"',
    "two objects": b"{}{}",
    "Latin-1": '{"title": "é"}'.encode("latin-1"),
    "nested without end": b"[" * 100_000,
    "a list": b"[]",
    "a text": b'"ok"',
    "null": b"null",
    "a number of too many digits": b'{"total": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_a_body_that_is_no_json_object_is_malformed(body):
    with pytest.raises(MalformedError, match="sent no JSON"):
        parse_object(body)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_json_in_any_encoding_of_unicode_is_read(encoding):
    assert parse_object(' \n{"title": "Über 中"}'.encode(encoding)) == {"title": "Über 中"}


NO_XML = {
    "empty": b"",
    "JSON": b'{"error": "API rate limit exceeded"}',
    "HTML": b"<html><body>Bad gateway<br></body></html>",
    "cut": b'<?xml version="1.0"?><feed><entry><title>A',
    "unknown encoding": b'<?xml version="1.0" encoding="no-such"?><a/>',
    "Latin-1 that says UTF-8": b'<?xml version="1.0" encoding="utf-8"?><a>\xe9</a>',
    "entity bomb": b'<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>',
    "file of this machine": b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>',
}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (rb'{"a": ["x\ud800y"], "x\ud800y": 1}', "xy"),
        (rb'{"a": ["x\UDC00"], "x\UDC00": 1}'.replace(b"U", b"u"), "x"),
        (b'{"a": ["x\xed\xa0\x80y"], "x\xed\xa0\x80y": 1}', "xy"),
        (rb'{"a": ["\ud83d\ude00"], "\ud83d\ude00": 1}', "\N{GRINNING FACE}"),
    ],
)
def test_halves_of_surrogate_pairs_are_left_out(body, value):
    assert parse_object(body) == {"a": [value], value: 1}


@pytest.mark.parametrize("body", NO_XML.values(), ids=NO_XML)
def test_a_body_that_is_no_whole_xml_is_malformed(body):
    with pytest.raises(MalformedError, match="sent no whole XML"):
        parse_xml(body)


def test_xml_is_read_in_the_encoding_that_it_names():
    assert parse_xml('<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("latin-1")).text == "é"
    assert parse_xml(b'<!DOCTYPE a PUBLIC "-//X//DTD" "https://example.org/x.dtd"><a>b</a>').text == "b"


def test_the_beginning_of_a_body_is_shown_on_one_line_without_markup():
    html = b"<html><head><style>p {color: red}</style></head><body>\n<h1>502</h1>\nBad gateway</body></html>"
    assert shown(html) == "'502 Bad gateway'"
    assert shown(b"") == "nothing"
    assert shown(b"<p></p>") == "'<p></p>'"
    assert len(shown(b"a" * 5000)) == 82


@given(st.binary())
def test_any_body_can_be_shown(body):
    assert "\n" not in shown(body)


def test_null_and_other_types_count_as_nothing():
    assert mapping(None) == mapping([1]) == mapping("a") == {}
    assert listing(None) == listing({"a": 1}) == listing("a") == []
    assert (mapping({"a": 1}), listing([1])) == ({"a": 1}, [1])
    assert flag(None) is flag(1) is flag("true") is None
    assert (flag(True), flag(False)) == (True, False)


def test_a_list_keeps_its_length_whatever_stands_in_it():
    assert objects([{"a": 1}, None, "b", {"a": None}]) == [{"a": 1}, {}, {}, {"a": None}]
    assert values_of([{"a": 1}, None, "b", {"a": None}], "a") == [1, None, None, None]
    assert objects({"a": 1}) == values_of(None, "a") == []


def test_the_first_web_address_is_taken():
    assert web_address(None, 1, "", "ftp://a.org", "a.org", " https://b.org/c ", "http://d.org") == "https://b.org/c"
    assert web_address("HTTPS") is web_address() is None


BODIES = {
    "doaj": {
        "total": 2,
        "results": [
            {
                "id": "a1",
                "bibjson": {
                    "title": "T",
                    "year": "2020",
                    "month": "4",
                    "start_page": "1",
                    "abstract": "A",
                    "identifier": [{"type": "doi", "id": "10.1000/a"}, {"type": "pissn", "id": "0028-0836"}],
                    "journal": {"title": "J", "volume": "1", "issns": ["0028-0836"]},
                    "author": [{"name": "A B"}],
                    "subject": [{"term": "S"}],
                    "keywords": ["k"],
                    "link": [{"type": "fulltext", "content_type": "pdf", "url": "http://a.org/b"}],
                },
            },
            {"id": "sound", "bibjson": {"title": "Sound"}},
        ],
    },
    "scopus": {
        "search-results": {
            "opensearch:totalResults": "2",
            "entry": [
                {
                    "dc:identifier": "SCOPUS_ID:1",
                    "dc:title": "T",
                    "prism:doi": "10.1000/a",
                    "prism:coverDate": "2020-01-01",
                    "prism:coverDisplayDate": "2020",
                    "prism:issn": "00280836",
                    "prism:aggregationType": "Journal",
                    "subtype": "ar",
                    "subtypeDescription": "Article",
                    "citedby-count": "3",
                    "openaccess": "1",
                    "openaccessFlag": True,
                    "authkeywords": "a | b",
                    "author": [{"authname": "B A.", "given-name": "A", "surname": "B"}],
                    "link": [{"@ref": "scopus", "@href": "http://a.org"}],
                },
                {"dc:identifier": "SCOPUS_ID:sound", "dc:title": "Sound"},
            ],
        }
    },
    "wos": {
        "metadata": {"total": 2},
        "hits": [
            {
                "uid": "WOS:1",
                "title": "T",
                "types": ["Article"],
                "sourceTypes": ["Article"],
                "source": {"sourceTitle": "J", "publishYear": 2020, "publishMonth": "FEB", "pages": {"range": "1-2"}},
                "names": {"authors": [{"displayName": "B, A"}]},
                "citations": [{"db": "WOS", "count": 3}],
                "identifiers": {"doi": "10.1000/a", "issn": "0028-0836"},
                "keywords": {"authorKeywords": ["k"]},
                "links": {"record": "http://a.org"},
            },
            {"uid": "WOS:sound", "title": "Sound"},
        ],
    },
}


def places(value, path=()):
    """Every place in a value of JSON."""
    yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("odd", [None, 1, -0.5, True, "", "odd", [], [[None]], {}, {"odd": [1]}], ids=str)
def test_an_odd_value_anywhere_in_a_record_loses_that_record_at_most(name, odd):
    records = {"doaj": ["results"], "scopus": ["search-results", "entry"], "wos": ["hits"]}[name]
    asked = source(name).search(Query("q", "a"), datetime.date(2026, 1, 1), 2)
    first = BODIES[name]
    for key in records:
        first = first[key]
    for path in places(first[0]):
        body = copy.deepcopy(BODIES[name])
        at = body
        for key in [*records, 0, *path][:-1]:
            at = at[key]
        at[path[-1] if path else 0] = odd
        papers = source(name).read(json.dumps(body).encode(), asked).papers
        assert papers[-1].title == "Sound"
        assert all(isinstance(paper.title, str) and paper.year in {2020, None} for paper in papers)
