import io
import zlib

import pytest

from pipeline.scraping.documents import Found, UnreadableError, read_document, read_html, read_pdf

URL = "https://journal.example/article/7"
ABSTRACT = (
    "We study how bees find nectar in meadows with few flowers. Forty hives were watched over two summers. "
    "Bees fly farther after rain than before it."
)
BODY = "".join(
    f"<p>{kind} bees dance for their sisters, and flowers answer them with scent and colour all summer long.</p>"
    for kind in ("Honey", "Wild", "Small", "Large", "Tame")
)


def page(main: str = "", head: str = "") -> bytes:
    return (
        f"<!DOCTYPE html><html><head>{head}</head><body><nav><a href='/'>Home</a></nav><main><article>"
        f"<h1>Bees and nectar</h1><p>A. Beekeeper</p>{main}</article></main><footer>2020</footer></body></html>"
    ).encode()


def meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{content}">'


def pdf(*lines: str, info: bytes = b"") -> bytes:
    """One page that says these lines."""
    shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
    return raw_pdf(f"BT /F1 12 Tf 50 750 Td {shown}ET".encode("cp1252"), info)


def raw_pdf(content: bytes, info: bytes = b"") -> bytes:
    stream = zlib.compress(content)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        b"<<%b>>" % info,
    ]
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    starts = []
    for number, written in enumerate(objects, 1):
        starts.append(out.tell())
        out.write(b"%d 0 obj\n%b\nendobj\n" % (number, written))
    table = out.tell()
    out.write(b"xref\n0 7\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % start for start in starts))
    out.write(b"trailer\n<</Size 7/Root 1 0 R/Info 6 0 R>>\nstartxref\n%d\n%%%%EOF" % table)
    return out.getvalue()


# Pages: meta tags


def test_meta_tags_tell_all():
    head = (
        meta("citation_title", "Bees &amp; nectar")
        + meta("citation_abstract", f"<p>{ABSTRACT}</p>")
        + meta("citation_keywords", "bees; nectar, sweet; rain")
        + meta("citation_doi", "https://doi.org/10.1234/BEES.7")
    )
    assert read_html(page(head=head), URL) == Found(
        title="Bees & nectar",
        abstract=ABSTRACT,
        keywords=("bees", "nectar, sweet", "rain"),
        doi="10.1234/bees.7",
    )


@pytest.mark.parametrize("name", ["citation_abstract", "DCTERMS.abstract", "dc.Description", "DC.description"])
def test_an_abstract_in_a_meta_tag_is_found_in_any_case(name):
    assert read_html(page(head=meta(name, ABSTRACT)), URL).abstract == ABSTRACT


@pytest.mark.parametrize(
    "label", ["Abstract: ", "Abstract\n", "ABSTRACT. ", "Summary - ", "Abstract", "&lt;h2&gt;Abstract&lt;/h2&gt; "]
)
def test_the_label_of_an_abstract_is_no_part_of_it(label):
    assert read_html(page(head=meta("dc.description", label + ABSTRACT)), URL).abstract == ABSTRACT


@pytest.mark.parametrize(
    "beginning", ["Abstract interpretation is old. ", "Abstraction is old. ", "Summary statistics lie. "]
)
def test_an_abstract_may_begin_with_the_word(beginning):
    assert read_html(page(head=meta("dc.description", beginning + ABSTRACT)), URL).abstract == beginning + ABSTRACT


@pytest.mark.parametrize(
    "text", ["", "No abstract is available for this article.", ABSTRACT + " We also...", ABSTRACT + "…"]
)
def test_placeholders_and_texts_cut_off_are_no_abstract(text):
    assert read_html(page(head=meta("citation_abstract", text)), URL).abstract is None


def test_a_text_cut_off_gives_way_to_the_page():
    head, main = (
        meta("dc.description", ABSTRACT[:120] + "..."),
        f"<h2>Abstract</h2><p>{ABSTRACT}</p><h2>1. Introduction</h2>{BODY}",
    )
    assert read_html(page(main, head), URL).abstract == ABSTRACT


def test_keywords_in_several_tags_are_put_together_once():
    head = meta("citation_keywords", "bees") + meta("citation_keywords", "nectar") + meta("citation_keywords", "bees")
    assert read_html(page(head=head), URL).keywords == ("bees", "nectar")


def test_keywords_of_search_engines_serve_where_there_are_no_others():
    titled = meta("citation_title", "Bees and nectar") + meta("keywords", "bees, nectar")
    assert read_html(page(head=titled), URL).keywords == ("bees", "nectar")
    assert read_html(page(head=titled + meta("citation_keywords", "hives")), URL).keywords == ("hives",)


def test_keywords_of_search_engines_on_a_page_without_a_title_of_a_paper_are_of_no_paper():
    login = meta("keywords", "journals, login") + meta("og:title", "Log in") + "<title>Log in</title>"
    assert read_html(page(head=login), URL) == Found()


def test_a_text_is_no_list_of_keywords():
    head = meta("citation_title", "Bees and nectar") + meta("keywords", ABSTRACT.replace(".", ""))
    assert read_html(page(head=head), URL).keywords == ()


# Pages: descriptions for search engines

LONG = f"{ABSTRACT} We do not know why that is. {ABSTRACT}"  # 300 characters and more


@pytest.mark.parametrize("name", ["description", "og:description"])
def test_a_long_whole_description_of_a_paper_is_its_abstract(name):
    head = meta("citation_title", "Bees and nectar") + f'<meta property="{name}" content="{LONG}">'
    assert len(LONG) >= 300
    assert read_html(page(head=head), URL).abstract == LONG


@pytest.mark.parametrize(
    ("title", "description"),
    [
        ("Bees and nectar", ABSTRACT),  # 145 characters: search engines get such lines
        ("Bees and nectar", LONG.rstrip(".")),  # cut, or no prose
        ("", LONG),  # of a journal, a login page...
    ],
)
def test_other_descriptions_are_no_abstract(title, description):
    head = meta("citation_title", title) + meta("description", description)
    assert read_html(page(head=head), URL).abstract is None


# Pages: the text


@pytest.mark.parametrize(
    "main",
    [
        f"<h2>Abstract</h2><p>{ABSTRACT}</p><h2>1. Introduction</h2>{BODY}",
        f'<section class="abstract"><h2>Abstract</h2><p>{ABSTRACT}</p></section><h2>Introduction</h2>{BODY}',
        f"<div><h3>Summary</h3><div>{ABSTRACT}</div></div><h2>Introduction</h2>{BODY}",
        f"<p><b>Abstract</b></p><p>{ABSTRACT}</p><h2>Introduction</h2>{BODY}",
        f"<p><b>Abstract.</b> {ABSTRACT}</p><h2>Introduction</h2>{BODY}",
        f'<blockquote class="abstract"><span>Abstract:</span>{ABSTRACT}</blockquote>',
        f"<h2>Abstract</h2><p>{ABSTRACT}</p>",
        f"<h2>Abstract</h2><p>{ABSTRACT}</p><p>Share this article with your friends.</p>",
        f"<h2>Abstract</h2><p>{ABSTRACT}</p><p>Keywords: bees, nectar</p><h2>Introduction</h2>{BODY}",
        f"<h2>Graphical abstract</h2><p>A bee.</p><h2>Abstract</h2><p>{ABSTRACT}</p><h2>Introduction</h2>{BODY}",
    ],
)
def test_the_abstract_stands_after_its_heading(main):
    assert read_html(page(main), URL).abstract == ABSTRACT


def test_the_parts_of_a_structured_abstract_keep_their_headings():
    main = f"<h2>Abstract</h2><h3>Background</h3><p>{ABSTRACT}</p><h3>Results</h3><p>Far.</p><h2>Background</h2>{BODY}"
    assert read_html(page(main), URL).abstract == f"Background: {ABSTRACT} Results: Far."


def test_a_summary_at_the_end_is_no_abstract():
    main = f"<h2>1. Introduction</h2>{BODY}<h2>Summary</h2><p>{ABSTRACT}</p><h2>References</h2><p>None.</p>"
    assert read_html(page(main), URL).abstract is None


@pytest.mark.parametrize(
    "main", ["<p>Keywords: bees; nectar</p>", "<h3>Keywords</h3><ul><li>bees</li><li>nectar</li></ul>"]
)
def test_keywords_stand_after_their_heading(main):
    body = f"<h2>Abstract</h2><p>{ABSTRACT}</p>{main}<h2>Introduction</h2>{BODY}"
    assert read_html(page(body), URL).keywords == ("bees", "nectar")


def test_a_page_that_tells_nothing_gives_nothing():
    assert read_html(page(BODY), URL) == Found()


# Pages: encodings

FRENCH = (
    "Où les abeilles trouvent-elles le nectar après l\u2019été ? "
    "Nous avons observé quarante ruches pendant deux années entières."
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_an_encoding_need_not_be_declared(encoding):
    body = page(head=meta("citation_abstract", FRENCH)).decode().encode(encoding)
    assert read_html(body, URL).abstract == FRENCH


@pytest.mark.parametrize(
    "tag", ['<meta charset="{}">', '<meta http-equiv="Content-Type" content="text/html; charset={}">']
)
@pytest.mark.parametrize(
    ("encoding", "declared"), [("cp1252", "ISO-8859-1"), ("utf-8", "latin-1"), ("utf-8", "no-such")]
)
def test_what_a_page_declares_is_weighed_against_its_bytes(tag, encoding, declared):
    body = page(head=tag.format(declared) + meta("citation_abstract", FRENCH)).decode().encode(encoding)
    assert read_html(body, URL).abstract == FRENCH


def test_a_declared_encoding_that_no_bytes_tell_is_believed():
    greek = "\u03bc\u03ad\u03bb\u03b9\u03c3\u03c3\u03b5\u03c2 " * 15  # bees
    body = page(head=meta("citation_abstract", greek)).decode().encode("iso8859-7")
    assert read_html(body, URL, "iso-8859-7").abstract == greek.strip()
    declared = page(head='<meta charset="iso-8859-7">' + meta("citation_abstract", greek)).decode().encode("iso8859-7")
    assert read_html(declared, URL).abstract == greek.strip()


def test_the_declaration_of_xml_does_not_matter():
    body = b'<?xml version="1.0" encoding="ISO-8859-1"?>' + page(head=meta("citation_abstract", FRENCH))
    assert read_html(body, URL).abstract == FRENCH


@pytest.mark.parametrize("body", [b"", b"   ", b"{}", b"no markup at all"])
def test_what_is_no_page_is_unreadable(body):
    with pytest.raises(UnreadableError, match="HTML"):
        read_document("html", body, URL, None)


# PDFs

BROKEN_LINES = (
    "We study how bees find nec-",
    "tar in meadows with state-of-",
    "the-art methods and multi-",
    "agent-based models. Bees fly farther after rain.",
)
JOINED = (
    "We study how bees find nectar in meadows with state-of-the-art methods and multi-agent-based models. "
    "Bees fly farther after rain."
)


def test_a_pdf_tells_abstract_and_keywords_with_lines_joined():
    lines = (
        "Bees and nectar",
        "Abstract",
        *BROKEN_LINES,
        "Keywords: bees; nec-",
        "tar; rain.",
        "1 Introduction",
        "Bees are.",
    )
    found = read_pdf(pdf(*lines))
    assert (found.abstract, found.keywords) == (JOINED, ("bees", "nectar", "rain"))


@pytest.mark.parametrize(
    ("heading", "end"),
    [
        (["Abstract."], ["Introduction"]),
        (["ABSTRACT"], ["1. Introduction"]),
        (["A B S T R A C T"], ["I. INTRODUCTION"]),
        (["Summary"], ["Key words: bees, nectar"]),
        (["Abstract:"], ["Index Terms\x97bees, nectar"]),  # a dash in cp1252
        (["Abstract\x97"], ["\xa9 2020 The Beekeepers"]),
    ],
)
def test_publishers_begin_and_end_an_abstract_in_their_ways(heading, end):
    lines = (line.encode("latin-1").decode("cp1252") for line in ("Bees", *heading, *BROKEN_LINES, *end))
    assert read_pdf(pdf(*lines)).abstract == JOINED


def test_an_abstract_may_stand_on_the_line_of_its_heading_below_a_title_that_begins_so():
    first, *rest = BROKEN_LINES
    lines = ("Abstract Interpretation of Bees", "A. Beekeeper", f"Abstract {first}", *rest, "Introduction")
    assert read_pdf(pdf(*lines)).abstract == JOINED


def test_a_title_that_begins_with_the_word_begins_no_abstract():
    lines = ("Abstract Syntax Notation of Bees", "A. Beekeeper", *BROKEN_LINES, "\xa9 2020 The Beekeepers")
    assert read_pdf(pdf(*lines)).abstract is None


def test_the_word_within_a_text_begins_no_abstract():
    assert read_pdf(pdf("We parse an", "abstract syntax tree.", *BROKEN_LINES, "1 Introduction")).abstract is None


def test_an_abstract_without_an_end_is_none():
    assert read_pdf(pdf("Bees", "Abstract", *BROKEN_LINES, "Bees are insects.")).abstract is None


def test_keywords_beside_the_abstract_stand_one_a_line():
    lines = ("Keywords:", "Honey bees", "Nectar", "A B S T R A C T", *BROKEN_LINES, "1. Introduction")
    found = read_pdf(pdf(*lines))
    assert (found.abstract, found.keywords) == (JOINED, ("Honey bees", "Nectar"))


def test_keywords_without_an_end_are_none():
    assert read_pdf(pdf("Keywords: bees, nectar", "Bees are insects, and many.")).keywords == ()


@pytest.mark.parametrize(
    ("told", "title"),
    [
        (b"Bees and nectar", "Bees and nectar"),
        (b"Microsoft Word - bees final.doc", None),
        (b"bees.dvi", None),
        (b"", None),
    ],
)
def test_a_title_in_the_properties_counts_unless_a_program_made_it_up(told, title):
    assert read_pdf(pdf("Bees", info=b"/Title(%b)" % told)).title == title


def test_the_beginning_of_a_pdf_holds_its_title_and_600_characters_at_most():
    assert read_pdf(pdf("Bees and", "nectar", "A. Beekeeper")).beginning == "Bees and nectar A. Beekeeper"
    lines = ["Bees and nectar", *(f"{number:049d}" for number in range(20))]  # 15 + 20 * 50 characters with line ends
    beginning = read_pdf(pdf(*lines)).beginning
    assert beginning is not None
    assert beginning.startswith("Bees and nectar 0000")
    assert len(beginning) == 600


def test_the_only_doi_of_the_first_page_is_that_of_the_paper():
    assert read_pdf(pdf("https://doi.org/10.1234/BEES.7")).doi == "10.1234/bees.7"
    assert read_pdf(pdf("doi:10.1234/bees.7", "[1] doi:10.1234/wasps.1")).doi is None


def test_a_pdf_locked_without_a_password_is_read():
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("Abstract", *BROKEN_LINES, "Introduction"))))
    writer.encrypt(user_password="", owner_password="secret", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    assert read_pdf(locked.getvalue()).abstract == JOINED


def test_a_pdf_that_needs_a_password_is_unreadable():
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("Abstract"))))
    writer.encrypt(user_password="secret", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    with pytest.raises(UnreadableError, match="PDF"):
        read_document("pdf", locked.getvalue(), URL, None)


def test_a_scanned_pdf_tells_nothing():
    assert read_pdf(pdf()) == Found()


@pytest.mark.parametrize("cut", [0, 9, 200])
def test_a_pdf_cut_off_is_unreadable(cut):
    with pytest.raises(UnreadableError, match="cannot be read as PDF"):
        read_document("pdf", pdf("Abstract", *BROKEN_LINES, "Introduction")[:cut], URL, None)
