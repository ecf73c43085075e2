"""The prompt: what is the same comes first, examples and fields as set, and what fits the window."""

import itertools
import logging

import pytest
from pydantic import ValidationError

from grade_helpers import candidates, prompt
from pipeline.papers import Paper, Query
from pipeline.prompting import Example, Question, build_messages, find_examples

HIGH, MODERATE, SOMEWHAT, LOW = "highly relevant", "moderately relevant", "somewhat relevant", "low relevance"
LARGE = 10**9
PAPER = Paper("p", "A title", "An abstract.", disciplines=("Physics", "Chemistry"), keywords=("flow", "heat"))
QUERY = Query("q", "flutter learning", ("dart", "apps"), "Physical Sciences", ("Computer Science",))


def messages(table, position=0, few_shot=3, budget=LARGE, task="label", **texts):
    asked = prompt(**texts)
    paper = table.papers[position]
    judged = Example(paper, table.columns["initial_category"][position])
    examples = find_examples(table, few_shot, asked.example_order, paper)
    return [m["content"] for m in build_messages(asked, Question(table.query, judged, examples, task, LOW), budget)]


def about(paper=PAPER, initial=SOMEWHAT, query=QUERY, task="label", category="", **texts):
    """The text that the user's message has for one paper without examples."""
    question = Question(query, Example(paper, initial), [], task, category)
    return build_messages(prompt(**texts), question, LARGE)[1]["content"]


#: Five papers of each category, from the highest score down: p0 to p4 highly relevant, ... p15 to p19 low.
TWENTY = candidates(*[category for category in (HIGH, MODERATE, SOMEWHAT, LOW) for _ in range(5)])


def common_start(one: str, other: str) -> str:
    return "".join(a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def ids(examples) -> list[str]:
    return [example.paper.paper_id for example in examples]


def test_all_but_the_paper_is_the_same_for_two_papers_of_a_query():
    first, second = messages(TWENTY, 4), messages(TWENTY, 9)
    assert first[0] == second[0]
    shared = common_start(first[1], second[1])
    assert shared.endswith("The paper to judge:\n<paper>\ntitle: Title ")
    assert all(f"title: Title {i}\n" in shared for i in (0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16, 17))


def test_ways_of_asking_differ_only_at_the_end():
    texts = [messages(TWENTY, 4, task=task)[1] for task in ("label", "category", "digit", "explain")]
    until = texts[0].rindex("</paper>") + len("</paper>\n\n")
    assert all(text.startswith(texts[0][:until]) for text in texts)


def test_the_parts_come_in_order():
    system, user = messages(TWENTY, 4)
    assert system.index("You judge how") < system.index("five criteria") < system.index("by these rules")
    order = [
        "<query>",
        "Papers found for this query",
        "title: Title 15\n",
        "The paper to judge",
        "Judge the paper above",
    ]
    assert [user.index(part) for part in order] == sorted(user.index(part) for part in order)


def test_examples_are_the_best_of_each_category_in_the_order_set():
    judged = TWENTY.papers[4]
    rising = "p15 p16 p17 p10 p11 p12 p5 p6 p7 p0 p1 p2".split()
    falling = "p0 p1 p2 p5 p6 p7 p10 p11 p12 p15 p16 p17".split()
    assert ids(find_examples(TWENTY, 3, "rising", judged)) == rising
    assert ids(find_examples(TWENTY, 3, "falling", judged)) == falling
    assert ids(find_examples(TWENTY, 1, "falling", judged)) == ["p0", "p5", "p10", "p15"]
    assert find_examples(TWENTY, 0, "falling", judged) == []
    text = messages(TWENTY, 4, example_order="falling")[1]
    assert [text.index(f"title: Title {i[1:]}\n") for i in falling] == sorted(
        text.index(f"title: Title {i[1:]}\n") for i in falling
    )


@pytest.mark.parametrize("position", range(20))
def test_the_paper_judged_is_never_its_own_example(position):
    judged = TWENTY.papers[position]
    found = ids(find_examples(TWENTY, 3, "falling", judged))
    assert len(found) == 12
    assert judged.paper_id not in found
    assert messages(TWENTY, position)[1].count(f"title: {judged.title}\n") == 1


def test_a_category_with_few_papers_has_few_examples():
    table = candidates(HIGH, LOW, LOW)
    assert ids(find_examples(table, 3, "falling", table.papers[0])) == ["p1", "p2"]
    only = candidates(HIGH)
    assert "Papers found" not in messages(only)[1]


def test_what_is_known_of_paper_and_query_is_told_and_nothing_else():
    assert about().startswith(
        "The query:\n<query>\ntitle: flutter learning\nkeywords: dart, apps\ndomain: Physical Sciences\n"
        "subject fields: Computer Science\n</query>\n\n"
        "The paper to judge:\n<paper>\ntitle: A title\nabstract: An abstract.\ndisciplines: Physics, Chemistry\n"
        "keywords: flow, heat\ninitial category: somewhat relevant\n</paper>\n\nJudge the paper above."
    )
    bare = about(Paper("p", "A title", "  "), query=Query("q", "flutter learning"))
    assert bare.startswith(
        "The query:\n<query>\ntitle: flutter learning\n</query>\n\n"
        "The paper to judge:\n<paper>\ntitle: A title\ninitial category: somewhat relevant\n</paper>\n\nJudge"
    )


def test_only_the_fields_that_are_set_are_told_and_examples_keep_their_category():
    judged_alone = about(paper_fields=("title",))
    assert "<paper>\ntitle: A title\n</paper>" in judged_alone
    user = messages(candidates(HIGH, LOW), 1, paper_fields=("abstract",))[1]
    assert "<paper>\nabstract: Abstract 0.\ninitial category: highly relevant\n</paper>" in user
    assert "The paper to judge:\n<paper>\nabstract: Abstract 1.\n</paper>" in user


def test_parts_that_are_null_are_left_out():
    system = messages(TWENTY, criteria=None, rules=None)[0]
    assert system == prompt().role.strip()
    assert "five criteria" in messages(TWENTY, rules=None)[0]


def test_the_category_to_explain_is_named():
    assert "The paper above was judged as: low relevance. Say why." in about(task="explain", category=LOW)


@pytest.mark.parametrize(
    "wrong", [{"paper_fields": ()}, {"paper_fields": ("titel",)}, {"example_order": "random"}, {"extra": "x"}], ids=str
)
def test_a_prompt_that_is_none_is_refused(wrong):
    with pytest.raises(ValidationError):
        prompt(**wrong)


def size(texts) -> float:
    """Tokens, at three bytes each."""
    return sum(len(text.encode()) for text in texts) / 3


@pytest.mark.parametrize("order", ["rising", "falling"])
def test_a_prompt_that_is_too_long_loses_its_examples_from_the_lowest_score_up(caplog, order):
    lowest_first = [f"p{i}" for i in "17 16 15 12 11 10 7 6 5 2 1 0".split()]
    whole, bare = (size(messages(TWENTY, 4, few_shot=number, example_order=order)) for number in (3, 0))
    numbers = []
    for budget in range(int(bare), int(whole) + 20, 10):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            texts = messages(TWENTY, 4, example_order=order, budget=budget)
        left_out = [i for i in lowest_first if f"title: Title {i[1:]}\n" not in texts[1]]
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
        assert left_out == lowest_first[: len(left_out)]
        assert [message.rsplit(" is left out")[0].rsplit("example ")[1] for message in told] == left_out
        assert all(message.startswith("query q, paper p4: the prompt is too long") for message in told)
        assert size(texts) <= budget or len(left_out) == 12
        numbers.append(len(left_out))
    assert numbers == sorted(numbers, reverse=True)  # more room, fewer left out
    assert set(numbers) == set(range(13))


def test_a_paper_longer_than_the_window_is_asked_about_without_examples():
    table = candidates(HIGH, LOW, papers=[Paper("p0", "Title 0"), Paper("p1", "Title 1", "word " * 5000)])
    user = messages(table, 1, budget=1000)[1]
    assert user.count("word ") >= 4999
    assert "Title 0" not in user
