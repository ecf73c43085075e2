"""Titles that could be those of one paper, and texts in which a title stands."""

from __future__ import annotations

import pytest

from pipeline.merging.titles import could_be_same, holds_title

DIFFERENT = [
    ("The role of vitamin D in the treatment of cancer", "The role of exercise in the treatment of depression"),
    ("A systematic review of deep learning in education", "A systematic review of telehealth in rural care"),
    ("Effects of caffeine on sleep in adults", "Effects of alcohol on memory in mice"),
    ("Introduction", "Introduction to algorithms"),
    (
        "\u871c\u8702\u5728\u96e8\u540e\u5982\u4f55\u5bfb\u627e\u82b1\u871c\u7684\u7814\u7a76",
        "\u94dc\u4ef7\u7684\u6df1\u5ea6\u5b66\u4e60\u9884\u6d4b\u65b9\u6cd5\u4e0e\u5e94\u7528",
    ),
]
ALIKE = [
    ("Foraging honey bees after rain: a study of forty hives", "Foraging honey bees after rain"),
    ("Foraging Honey Bees After Rain", "FORAGING HONEY BEES AFTER RAIN"),
    ("Growth of <i>Apis mellifera</i> in CO<sub>2</sub>", "Growth of Apis mellifera in CO2"),
    ("Honey bees find sweet nectar quickly", "Honey bees find sweet nectar slowly"),  # one word of six
    ("Foraging honey bees after rain", "Foragign hony bees after rain"),
    ("\u871c\u8702\u5728\u96e8\u540e\u5982\u4f55\u5bfb\u627e\u82b1\u871c\u7684\u7814\u7a76",) * 2,
]


@pytest.mark.parametrize(("a", "b"), ALIKE)
def test_titles_that_say_nearly_the_same_could_be_of_one_paper(a: str, b: str) -> None:
    assert could_be_same(a, b)
    assert could_be_same(b, a)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_titles_that_share_the_words_of_all_titles_are_of_two_papers(a: str, b: str) -> None:
    assert not could_be_same(a, b)
    assert not could_be_same(b, a)


def test_an_unknown_title_could_be_any() -> None:
    assert could_be_same("", "Foraging honey bees after rain")
    assert could_be_same("Foraging honey bees after rain", "")
    assert could_be_same("Introduction", "Introduction")


@pytest.mark.parametrize(("title", "spelled"), ALIKE[1:3] + ALIKE[4:])
def test_a_title_stands_in_a_text_in_other_spellings(title: str, spelled: str) -> None:
    assert holds_title(f"Journal of Bees 7 (2020), 1-9\n{spelled}\nA. Beekeeper\nAbstract", title)


def test_a_title_stands_in_a_text_over_several_lines() -> None:
    assert holds_title("BEES\nForaging hon-\ney bees\nafter   rain\nA. Beekeeper", "Foraging honey bees after rain")


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_a_title_does_not_stand_in_a_text_of_another_paper(a: str, b: str) -> None:
    assert not holds_title(f"{a}\nA. Beekeeper\nAbstract", b)
    assert not holds_title(f"{b}\nA. Beekeeper\nAbstract", a)


@pytest.mark.parametrize("text", ["", "Bees", "Honey bees"])
def test_a_text_that_stands_in_a_title_does_not_hold_it(text: str) -> None:
    assert not holds_title(text, "Foraging honey bees after rain")


@pytest.mark.parametrize("title", ["", "Bees", "Editorial", "Letter to the editor"])
def test_a_title_that_many_papers_have_tells_nothing(title: str) -> None:
    assert not holds_title(f"{title}\nA. Beekeeper", title)
