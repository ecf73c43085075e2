"""Papers that nobody wrote: drawn from a seed, one by one, so that the thousandth needs none before it."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass

#: What to search for: every title and abstract has these words.
QUERY_TEXT = "learning system for flutter programming"
NEWEST = datetime.date(2025, 12, 31)
PER_SEED = 100_000  #: how many papers a seed has numbers for

_NOUNS = (
    "anchors baskets beacons bridges canals carpets castles cattle cedars chimneys cisterns clocks comets copper "
    "corridors cotton deltas dialects ferries fevers fjords forests gardens glaciers gossip grasslands harbours "
    "herons hinges ledgers lanterns lichens markets meadows mortgages mosses orchards otters parishes pendulums "
    "pigments pollen quarries rituals rivers saddles sediments shadows tariffs tendons tides timber tunnels turbines "
    "valves villages violins whispers yeasts"
).split()
_ADJECTIVES = (
    "abrupt adaptive ancient bitter brittle careful coastal crowded damp distant dusty early elastic fragile frozen "
    "gentle hidden hollow humid joint lazy loyal lunar modest molten naïve narrow nocturnal oblique patient quiet "
    "rapid remote rural salty seasonal shallow silent smooth sparse steep sturdy subtle tidal timid uneven urban "
    "vague vivid wandering"
).split()
_SYLLABLES = (
    "bal brek cor dalt drum fep gar hol ïs juk kwar lom mib nex öst plin quo rud sel tasch ulf vek wyn xan yorp zet "
    "ach eph ibb oog usk thra skel grimm clav smolt fjor bwe dhu pfen"
).split()
_TITLES = (
    "{P} {a} {n}: a learning system for {Q} {b} {m}, flutter programming {R}",
    "How {P} {n} change {Q} {m}: flutter programming, {a} learning system for {b} {R}",
    "{n} {P}, {m} {Q}: {a} flutter programming for a {b} {R} learning system",
    "Flutter programming for {a} {P}; {Q} {n} and the learning system {R} of {b} {m}",
    "On {b} {Q} {m}: learning system {R} for {a} {n}, flutter programming after {P}",
    "{P} against {Q}: {a} {n}, {b} {m}, learning system for flutter programming in {R}",
    "{R} learning, {Q} system: {b} flutter {m} for {P} programming of {a} {n}",
    "Which {a} system? {P} programming {n} with {Q} for {b} learning {m}: flutter {R}",
)
_FAMILIES = (
    "Abara Berg Castellón Dvořák Eriksen Fournier Gómez Haddad Ibsen Jansen Kowalczyk Løvås Müller Nakata Okafor "
    "Petrov Quispe Rossi Şahin Tanaka Ueda Varga Weiß Xu Ylmaz Zeller"
).split()
_GIVEN = "Ana Björn Chidi Dana Émile Farah Goro Hana Ivo June Kofi Lena Mira Noor Otto Pia Rui Sven Tove Uma".split()
_DISCIPLINES = ("Computer Science", "Education", "Medicine", "Psychology", "Economics", "Biology")


def _check_digit(seven: str) -> str:
    rest = sum(weight * int(digit) for weight, digit in zip(range(8, 1, -1), seven, strict=True)) % 11
    return "0X987654321"[rest]


def _journal(i: int) -> tuple[str, str]:
    seven = str(1_234_567 + 97_531 * i)
    return f"Annals of {_ADJECTIVES[i].title()} {_NOUNS[i].title()}", f"{seven[:4]}-{seven[4:]}{_check_digit(seven)}"


#: Names and ISSNs of the journals that the papers stand in.
JOURNALS = tuple(_journal(i) for i in range(24))


@dataclass(frozen=True, slots=True)
class MadeUp:
    """One paper as it is in truth; each API tells a part of it."""

    number: int  #: of the paper, over all seeds; the ids of all sources are made from it
    title: str
    abstract: str
    authors: tuple[tuple[str, str], ...]  #: given name, family name
    date: datetime.date
    doi: str  #: of the journal article; preprints have their own (see ids.py)
    journal: str
    issn: str
    volume: str
    issue: str
    first_page: int
    last_page: int
    keywords: tuple[str, ...]
    discipline: str
    citation_count: int
    references: tuple[str, ...]  #: DOIs of papers of the same seed
    is_open: bool
    is_published: bool  #: whether a preprint of it names ``doi``
    version: int = 1

    @property
    def year(self) -> int:
        return self.date.year


def made_up_papers(n: int, seed: int = 0, *, newest: datetime.date = NEWEST, days: int = 3650) -> list[MadeUp]:
    """Return ``n`` papers of the ``days`` up to ``newest``; the same ones whenever it is called."""
    return [made_up_paper(i, seed, newest=newest, days=days) for i in range(n)]


def made_up_paper(i: int, seed: int = 0, *, newest: datetime.date = NEWEST, days: int = 3650) -> MadeUp:
    """Return the ``i``-th paper of a seed."""
    draw = random.Random(f"{seed} {i}")
    journal, issn = draw.choice(JOURNALS)
    first_page = draw.randrange(1, 900)
    return MadeUp(
        number=seed * PER_SEED + i,
        title=_title(draw),
        abstract=_abstract(draw),
        authors=tuple((draw.choice(_GIVEN), draw.choice(_FAMILIES)) for _ in range(draw.randrange(1, 6))),
        date=newest - datetime.timedelta(days=draw.randrange(days)),
        doi=_doi(seed, i),
        journal=journal,
        issn=issn,
        volume=str(draw.randrange(1, 80)),
        issue=str(draw.randrange(1, 12)),
        first_page=first_page,
        last_page=first_page + draw.randrange(1, 30),
        keywords=tuple(draw.sample(_NOUNS, 3)),
        discipline=draw.choice(_DISCIPLINES),
        citation_count=int(draw.paretovariate(1)) - 1,
        references=tuple(_doi(seed, earlier) for earlier in sorted({draw.randrange(i) for _ in range(4)} if i else ())),
        is_open=draw.random() < 0.5,
        is_published=draw.random() < 0.4,
    )


def _doi(seed: int, i: int) -> str:
    return f"10.5555/made-up.{seed}.{i}"


def _name(draw: random.Random) -> str:
    return "".join(draw.choices(_SYLLABLES, k=4)).capitalize()


def _title(draw: random.Random) -> str:
    (n, m), (a, b) = draw.sample(_NOUNS, 2), draw.sample(_ADJECTIVES, 2)
    title = draw.choice(_TITLES).format(n=n, m=m, a=a, b=b, P=_name(draw), Q=_name(draw), R=_name(draw))
    return title[0].upper() + title[1:]


def _abstract(draw: random.Random) -> str:
    sentences = ["We describe a learning system for flutter programming."]
    for _ in range(5):
        words: Sequence[str] = [word for _ in range(4) for word in (draw.choice(_ADJECTIVES), draw.choice(_NOUNS))]
        sentences.append(f"{_name(draw)} {' '.join(words)}.")
    return " ".join(sentences)
