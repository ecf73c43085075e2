"""Abstract and keywords of a paper from the bytes of its web page or PDF. What is not there for certain is None."""

from __future__ import annotations

import codecs
import io
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.cleaning import clean_text, clean_texts, text_or_none
from pipeline.identifiers import normalize_doi

Kind = Literal["html", "pdf"]

_ABSTRACT_LENGTH = range(100, 10_001)  # characters; shorter: "No abstract is available", longer: the whole paper
_DESCRIPTION_LENGTH = 300  # at least: what pages say of themselves to search engines is shorter
_KEYWORD_LENGTH = 80
_KEYWORDS_LENGTH = 1_000  # of all of them: longer is a text, or meant for search engines
_BEGINNING = 600  # characters of a first page
_PAGES, _PAGES_LENGTH = 2, 60_000  # of a PDF; far more characters than fit on its pages

_TEXT = 7  # the level of a block that is no heading
#: What an abstract may begin with; "Abstract interpretation" and "Abstraction" are words of their own.
_LABEL = re.compile(
    r"(?:\s|<[^<>]{0,40}>)*"
    r"(?:(?i:abstract|summary)(?:\s*[:.\u2013\u2014]|\s+-\s|[ \t]*\n|\s*(?=</))|(?:Abstract|ABSTRACT)(?=[A-Z][a-z]))"
)
_ABSTRACT = re.compile(r"abstract|summary", re.IGNORECASE)
_KEYWORDS = re.compile(r"key ?-?words?(?: and phrases)?|index terms", re.IGNORECASE)
_BODY = re.compile(
    r"(?:[\dIVX]+\.?\s*)?(?:introduction|background|main|(?:materials and )?methods|results|discussion|"
    r"conclusions?|references)",
    re.IGNORECASE,
)

#: How an abstract begins in a PDF: by a heading, or by the word before a sentence; titles too begin with the word.
_PDF_ABSTRACT = (
    re.compile(
        r"^[ \t]*(?:Abstract|A ?B ?S ?T ?R ?A ?C ?T|Summary|SUMMARY)[ \t]*(?:[:.\u2013\u2014-]+|$)", re.MULTILINE
    ),
    re.compile(
        r"^[ \t]*(?:Abstract|ABSTRACT)[ \t]+(?=(?:An?|As|At|By|For|From|Here|How|In|It|Many|Most|On|Our|Recent|Since|"
        r"The|There|These|This|To|We|While|With)\b)",
        re.MULTILINE,
    ),
)
_PDF_KEYWORDS = re.compile(
    r"^[ \t]*(?:Key ?-?[Ww]ords?|KEY ?-?WORDS|Index [Tt]erms|INDEX TERMS)\b[ \t]*[:.\u2013\u2014-]*", re.MULTILINE
)
_PDF_END = re.compile(
    rf"{_PDF_KEYWORDS.pattern}|^[ \t]*(?:©|Copyright\b|CCS C|ACM Reference|A ?B ?S ?T ?R ?A ?C ?T$|"
    r"(?:[1I]\.?[ \t]+)?(?:Introduction|I ?NTRODUCTION|Background|BACKGROUND)[ \t]*$)",
    re.MULTILINE,
)


class UnreadableError(Exception):
    """The bytes are not what they say, or broken."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a document says of the paper."""

    title: str | None = None
    abstract: str | None = None
    keywords: tuple[str, ...] = ()
    doi: str | None = None
    beginning: str | None = None  #: of a PDF, where its title stands: the properties of a file seldom hold it


def read_document(kind: Kind, body: bytes, url: str, charset: str | None) -> Found:
    """Read a document of either kind; ``UnreadableError`` for whatever its parser stumbles over.

    The parsers meet bytes of anyone here: this belongs into a process that can be killed.
    """
    try:
        return read_pdf(body) if kind == "pdf" else read_html(body, url, charset)
    except (UnreadableError, ImportError):  # of the second our installation is at fault
        raise
    except Exception as error:  # noqa: BLE001 (broken bytes bring about every kind of error in parsers)
        raise UnreadableError(f"cannot be read as {kind.upper()} ({type(error).__name__})") from None


def read_html(body: bytes, url: str, charset: str | None = None) -> Found:
    """Return what a page says in its meta tags, and else in its text; ``charset`` is what its header declares."""
    from trafilatura import load_html

    tree = load_html(_decode(body, charset))
    if tree is None:
        raise UnreadableError("holds no HTML")
    meta = _meta_tags(tree)
    blocks = _blocks(tree, url)
    title = _first(clean_text, _values(meta, "citation_title", "dc.title"))
    abstracts = _values(meta, "citation_abstract", "dcterms.abstract", "dc.description.abstract", "dc.description")
    return Found(
        title=title,
        abstract=_first_abstract([*abstracts, _section(blocks, _ABSTRACT)])
        or _first_abstract(_descriptions(meta) if title else ()),  # a page without a title of a paper is of no paper
        keywords=_keywords(_values(meta, "citation_keywords"))
        or _keywords([_section(blocks, _KEYWORDS)])
        or _keywords(_values(meta, "keywords") if title else ()),
        doi=_first(normalize_doi, _values(meta, "citation_doi", "prism.doi", "dc.identifier")),
    )


def read_pdf(body: bytes) -> Found:
    """Return what the first two pages say; an abstract or keywords without a visible end are none."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(body))
    pages = [page.extract_text() for page in itertools.islice(reader.pages, _PAGES)]
    text = _plain_letters("\n".join(pages)[:_PAGES_LENGTH])
    label = _PDF_KEYWORDS.search(text)
    dois = {doi for found in re.findall(r"10\.\d{4,9}/\S+", pages[0] if pages else "") if (doi := normalize_doi(found))}
    return Found(
        title=_pdf_title(reader.metadata.title if reader.metadata else None),
        abstract=_first_abstract(map(_join_lines, _pdf_abstracts(text))),
        keywords=_keywords([_until_end(text, label.end())]) if label else (),
        doi=dois.pop() if len(dois) == 1 else None,  # of several, some are those of references
        beginning=text_or_none(_plain_letters(pages[0])[:_BEGINNING]) if pages else None,
    )


def _decode(body: bytes, charset: str | None) -> str:
    """UTF-8 wherever it fits, whatever is declared: no text of another encoding looks like it by chance."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        declared = re.search(rb"""<meta[^<>]{0,200}charset=["'\s]*([\w.:-]+)""", body[:4096], re.IGNORECASE)
        names = [charset or "", declared.group(1).decode("ascii", "replace") if declared else ""]
    for name in names:
        try:
            codec = codecs.lookup(name).name
        except (LookupError, ValueError):
            continue
        return body.decode("cp1252" if codec in {"ascii", "iso8859-1"} else codec, "replace")  # as browsers do
    return body.decode("cp1252", "replace")


def _meta_tags(tree: Any) -> Mapping[str, list[str]]:
    meta: dict[str, list[str]] = {}
    for tag in tree.iter("meta"):
        name = tag.get("name") or tag.get("property") or ""
        meta.setdefault(name.strip().lower(), []).append(tag.get("content") or "")
    return meta


def _values(meta: Mapping[str, list[str]], *names: str) -> list[str]:
    return [text for name in names for text in meta.get(name, ())]


def _descriptions(meta: Mapping[str, list[str]]) -> list[str]:
    """Return what a page says of itself to search engines, where it is long for that and ends like a sentence."""
    texts = [text.strip() for text in _values(meta, "og:description", "description")]
    return [text for text in texts if len(text) >= _DESCRIPTION_LENGTH and text[-1] in ".!?\u3002"]


def _first(read: Callable[[str], str | None], texts: Iterable[str]) -> str | None:
    """Return the first of these texts in which something can be read, as it is read."""
    return next((value for text in texts if (value := read(text))), None)


def _blocks(tree: Any, url: str) -> list[tuple[int, str]]:
    """Return the blocks of the main text: the level of a heading (1 to 6) or _TEXT, and what it says."""
    from trafilatura import bare_extraction

    extracted: Any = bare_extraction(tree, url=url, fast=True, favor_recall=True, include_comments=False)
    blocks = []
    for element in extracted.body if extracted else ():
        text = clean_text(("; " if element.tag == "list" else "").join(element.itertext()))
        is_label = _ABSTRACT.fullmatch(text.rstrip(":.")) or _KEYWORDS.fullmatch(text.rstrip(":."))
        level = int((element.get("rend") or "h6")[-1]) if element.tag == "head" else 6 if is_label else _TEXT
        blocks.append((level, text))
    return blocks


def _section(blocks: list[tuple[int, str]], name: re.Pattern[str]) -> str:
    """Return the text under a heading of this name, or after the name in a paragraph, before the paper proper."""
    for n, (level, text) in enumerate(blocks):
        if level < _TEXT and name.fullmatch(text.rstrip(":.")):
            return _under(level, blocks[n + 1 :])
        if level == _TEXT and (
            found := re.match(rf"(?:{name.pattern})\s*(?:[:.\u2013\u2014]|-\s)", text, re.IGNORECASE)
        ):
            return text[found.end() :]
        if level < _TEXT and _BODY.fullmatch(text):
            break
    return ""


def _under(heading: int, blocks: list[tuple[int, str]]) -> str:
    """Return all up to the next heading; where none follows, one paragraph, because others may be anything."""
    texts: list[str] = []
    for level, text in blocks:
        if level <= heading or re.match(rf"(?:{_KEYWORDS.pattern})\s*[:.\u2013\u2014]", text, re.IGNORECASE):
            return " ".join(texts)
        texts.append(f"{text.rstrip(':.')}:" if level < _TEXT else text)
    return "".join(texts[:1])


def _first_abstract(texts: Iterable[str]) -> str | None:
    """Return the first of these texts that is an abstract by its length, and not cut off."""
    for text in texts:
        if len(text) < 5 * _ABSTRACT_LENGTH.stop:  # markup and all
            label = _LABEL.match(text)
            plain = clean_text(text[label.end() :] if label else text)
            if len(plain) in _ABSTRACT_LENGTH and not plain.endswith(("...", "…")):
                return plain
    return None


def _keywords(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the keywords that stand in these texts, parted by semicolons or the like, else commas, else lines."""
    found: list[str] = []
    for text in texts:
        mark = next((mark for mark in (r"[;·•|]", ",", r"\n") if re.search(mark, text)), r"\n")
        found += re.split(mark, text if mark == r"\n" else _join_lines(text))
    cleaned = clean_texts([keyword.strip().rstrip(".") for keyword in found])
    is_list = sum(map(len, cleaned)) <= _KEYWORDS_LENGTH and all(len(keyword) <= _KEYWORD_LENGTH for keyword in cleaned)
    return cleaned if is_list else ()


def _pdf_abstracts(text: str) -> Iterator[str]:
    for beginning in _PDF_ABSTRACT:
        yield from (_until_end(text, found.end()) for found in beginning.finditer(text))


def _until_end(text: str, start: int) -> str:
    end = _PDF_END.search(text, start)
    return text[start : end.start()].strip() if end else ""


def _join_lines(text: str) -> str:
    """Join the halves of words; the hyphen stays where the word has others, as in state-of-the-art."""
    return re.sub(r"(?<![\w-])([^\W\d_]+)-[ \t]*\n[ \t]*([^\W\d_]++)(?!-)", _one_word, text).replace("-\n", "-")


def _one_word(halves: re.Match[str]) -> str:
    first, second = halves.groups()
    return first + second if second[0].islower() else f"{first}-{second}"


def _plain_letters(text: str) -> str:
    """Part the ligatures of typesetters, such as fi."""
    return re.sub("[\ufb00-\ufb06]", lambda ligature: unicodedata.normalize("NFKC", ligature.group()), text)


def _pdf_title(text: object) -> str | None:
    """Return the title in the properties of a PDF, None for what a word processor put there of its own."""
    title = text_or_none(text)
    is_made_up = title and re.search(r"^(?:microsoft word|untitled|title)\b|\.\w{2,5}$|^\S*$", title, re.IGNORECASE)
    return None if is_made_up else title
