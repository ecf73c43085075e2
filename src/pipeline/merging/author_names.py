"""Names of authors as they are compared: "Walker K.W.", "Walker, K." and "Kevin W. Walker" are one person."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from pipeline.cleaning import clean_text
from pipeline.merging.title_keys import fold

_PARTICLES = frozenset("al bin da de del della den der di do dos du el ibn la le ten ter van von y zu zur".split())
_TITLES = frozenset("dr ii iii iv jr md mr mrs phd prof sr".split())
_ORGANISATION = frozenset(
    "association center centre collaboration committee consortium department group initiative institute network "
    "organisation organization project society team university working".split()
)
_NOBODY = re.compile(r"\W*(?:anon(?:ymous)?|unknown(?: author)?|et al|others|no authors? listed|na|none)\W*")


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it is compared with others."""

    words: tuple[str, ...]  #: given names, family names and initials, in order
    family: frozenset[str]  #: the words that may be the family name
    initials: frozenset[str]  #: the words that may be initials
    kind: str  #: the script, or that it is an organisation: names of two kinds cannot be compared


def read_name(name: str) -> Name | None:
    """Return a name as it is compared; None where it names nobody."""
    text = unicodedata.normalize("NFKC", clean_text(name))
    letters = [letter for letter in text if letter.isalpha()]
    if not letters or _NOBODY.fullmatch(text.lower()):
        return None
    script = unicodedata.name(letters[0], "?").split()[0]
    if letters[0] >= "\u2e80":  # family name and given name are often not told apart, and in either order
        word = "".join(sorted(letters))
        return Name((word,), frozenset({word}), frozenset(), script)
    before, _, after = text.partition(",")
    family, given = _words(before), _words(after)
    raw = _without_particles(family + given)
    words = tuple(_fold_name(word) for word in raw)
    shortened = _last_is_shortened(raw)
    initials = frozenset(word for word in words if len(word) == 1) | frozenset(words[-1:] if shortened else ())
    kind = "ORGANISATION" if _ORGANISATION & set(words) else script
    known = frozenset(map(_fold_name, family)) & set(words) if given else frozenset[str]()
    return Name(words, known or _may_be_family(words, shortened), initials, kind)


def same_person(a: Name | None, b: Name | None) -> bool | None:
    """Whether two names can be one person's: a family name in common, and given names that do not contradict.

    None where a name is unknown, or the two are of different scripts.
    """
    if a is None or b is None or a.kind != b.kind:
        return None
    if sorted(a.words) == sorted(b.words):
        return True
    shared = set(a.words) & set(b.words) & (a.family | b.family)
    return any(_given_names_agree(a, b, family) for family in shared)


def _given_names_agree(a: Name, b: Name, family: str) -> bool:
    of_a, of_b = ([word for word in name.words if word != family] for name in (a, b))
    if not of_a or not of_b:
        return True
    is_surely_family = family in a.family and family in b.family and a.kind != "ORGANISATION"
    return any(
        one == other or (one[0] == other[0] and (is_surely_family or one in a.initials or other in b.initials))
        for one in of_a
        for other in of_b
    )


def _may_be_family(words: tuple[str, ...], shortened: bool) -> frozenset[str]:  # noqa: FBT001
    if len(words[-1]) == 1:  # Walker K.W.
        return frozenset(word for word in words if len(word) > 1) or frozenset(words)
    return frozenset(words) if shortened else frozenset(words[-1:])


def _last_is_shortened(words: list[str]) -> bool:
    """Whether the last word may be initials without dots, as in "Walker KW"; "Xiaoming WU" looks alike."""
    *others, last = words
    return bool(others) and last.isupper() and len(last) <= 3 and not all(word.isupper() for word in others)


def _words(text: str) -> list[str]:
    found = re.findall(r"[^\W\d_]+", re.sub("['\u2018\u2019\u02bc`]", "", text))
    return [word for word in found if word.lower() not in _TITLES] or found


def _without_particles(words: list[str]) -> list[str]:
    """Particles of nobility come and go; "Le" alone before a given name is a family."""
    kept = [word for word in words if word.lower() not in _PARTICLES]
    return kept if len(kept) > 1 else words


def _fold_name(word: str) -> str:
    return re.sub("([aou])e", r"\1", fold(word)) or word
