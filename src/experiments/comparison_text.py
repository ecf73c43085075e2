"""A comparison of finished runs in words and tables, as Markdown that a terminal shows as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.comparison import Compared, Comparisons
from experiments.finished_runs import FinishedRun
from experiments.moved import SCORES, Move
from experiments.tables import COMPARISON_HEADER, comparison_cells, comparison_legend, markdown, signed

MOST_DETAILED = 5  #: runs that are shown query by query
_MOST_SETTINGS = 40
_MOST_COLUMNS = 5  #: runs that stand side by side; more stand below each other
_MOST_DELTAS = 10  #: queries at either end
_WIDTH = 44  #: of a title

_LABELS = {"bm25": "BM25", "sts": "STS", "initial_category": "initial", "expected_grade": "expected", "raw_score": "S"}


def comparison_text(compared: Comparisons, shown: int) -> str:
    """Return the whole comparison; moved papers of the ``shown`` queries that changed most."""
    notice = compared.collection.notice if compared.collection else compared.first.tags.get("notice")
    parts = [f"Runs on {compared.first.collection}, held against {compared.first.name}"]
    parts += [*([f"Note: {notice}"] if notice else []), *(f"Warning: {text}" for text in compared.warnings)]
    parts += ["**What differs in the settings**", _settings_text(compared)]
    if compared.compared:
        parts += ["**Metrics**", markdown(*_rows(compared)), *_left_out(compared), _legend(compared)]
    else:
        parts.append("Nothing is measured, for no query has judgments.")
    for run in compared.runs[1 : 1 + MOST_DETAILED]:
        parts += [*_deltas_text(compared, run), *_moves_text(compared, run, shown)]
    if (n_more := len(compared.runs) - 1 - MOST_DETAILED) > 0:
        parts.append(f"{_count(n_more, 'more run')}: query by query in per_query.csv, moved papers in moved.csv.")
    return "\n\n".join(parts)


def _settings_text(compared: Comparisons) -> str:
    shown = dict(list(compared.settings.items())[:_MOST_SETTINGS])
    if not shown:
        return "Nothing."
    more = f"\n\nand {len(compared.settings) - len(shown)} more" if len(shown) < len(compared.settings) else ""
    names = [run.name for run in compared.runs]
    if len(names) <= _MOST_COLUMNS:
        return markdown(["setting", *names], [[key, *values] for key, values in shown.items()]) + more
    rows = [[name, *values] for name, *values in zip(names, *shown.values(), strict=True)]
    return markdown(["run", *shown], rows) + more


def _rows(compared: Comparisons) -> tuple[list[str], list[list[str]]]:
    rows = []
    for entry in compared.compared:
        cells = comparison_cells(entry.comparison, entry.p_holm)
        if entry.comparison.n_nonzero == 0:
            cells[:2] = ["no difference", "—"]
        effect = entry.effect
        d = "—" if effect.cohen_d is None else f"{effect.cohen_d:+.2f}"
        means = [f"{mean:.3f}" for mean in entry.means]
        rows.append([entry.metric, entry.run.name, *means, *cells, f"{effect.rank_biserial + 0.0:+.2f}", d])
    return ["metric", "run", "baseline", "mean", *COMPARISON_HEADER, "r", "d"], rows


def _left_out(compared: Comparisons) -> list[str]:
    return [
        f"{entry.metric}: {_count(entry.left_out, 'query', 'queries')} left out, without a value in "
        f"{entry.run.name} or {compared.first.name}."
        for entry in compared.compared
        if entry.left_out
    ]


def _legend(compared: Comparisons) -> str:
    return (
        f"Means are over areas; baseline: {compared.first.name}. p: {comparison_legend('runs')} r: matched-pairs "
        "rank-biserial correlation, -1 to 1; d: Cohen's d of the differences, over queries. An arm is held against the "
        "judgments of its own top papers. —: no value; an area with a single query gives no interval."
    )


def _deltas_text(compared: Comparisons, run: FinishedRun) -> list[str]:
    entries = compared.of(run)
    if not entries:
        return []
    by = entries[0]
    order = [q for q in sorted(by.deltas, key=lambda q: (by.deltas[q], q)) if by.deltas[q]]
    if not order:
        return [f"**{run.name}: no difference in {by.metric}, query by query**"]
    n_higher = sum(by.deltas[q] > 0 for q in order)
    n_lower, n_equal = len(order) - n_higher, len(by.deltas) - len(order)
    title = f"**{run.name}: {by.metric} is higher in {n_higher} queries, lower in {n_lower}, equal in {n_equal}**"
    shown = order if len(order) <= 2 * _MOST_DELTAS else [*order[:_MOST_DELTAS], *order[-_MOST_DELTAS:]]
    rows = [_delta_row(compared, entries, query_id) for query_id in shown]
    if len(shown) < len(order):
        rows.insert(_MOST_DELTAS, ["…", *[""] * (len(rows[0]) - 1)])
    deltas = [f"Δ {entry.metric}" for entry in entries]
    return [title, markdown(["query", "area", "baseline", "value", *deltas, "text"], rows)]


def _delta_row(compared: Comparisons, entries: Sequence[Compared], query_id: str) -> list[str]:
    by = entries[0]
    values = [r.scores.queries[query_id][by.metric] for r in (compared.first, by.run)]
    deltas = ["—" if (delta := entry.deltas.get(query_id)) is None else signed(delta) for entry in entries]
    figures = [*(f"{value:.3f}" for value in values if value is not None), *deltas]
    return [query_id, compared.first.area_of[query_id], *figures, _short(_texts(compared).get(query_id, ""))]


def _texts(compared: Comparisons) -> dict[str, str]:
    return {query.query_id: query.text for query in compared.collection.queries} if compared.collection else {}


def _moves_text(compared: Comparisons, run: FinishedRun, shown: int) -> list[str]:
    moves = compared.moves[run.name]
    if not moves:
        return [f"**{run.name}: no paper entered or left the top {compared.top} of any query**"]
    of_query: dict[str, list[Move]] = {}
    for move in moves:
        of_query.setdefault(move.query_id, []).append(move)
    n_entered = sum(move.what == "entered" for move in moves)
    title = (
        f"**{run.name}: {_count(n_entered, 'paper')} entered and {len(moves) - n_entered} left the top {compared.top}"
    )
    parts = [f"{title} of {_count(len(of_query), 'query', 'queries')}{_grades(compared, moves)}**"]
    entries = compared.of(run)
    deltas = entries[0].deltas if entries else {}
    order = sorted(of_query, key=lambda q: (-abs(deltas.get(q, 0.0)), -len(of_query[q]), q))
    for query_id in order[:shown]:
        change = f" ({entries[0].metric} {signed(deltas[query_id])})" if query_id in deltas else ""
        text = f": {_short(text, 100)}" if (text := _texts(compared).get(query_id)) else ""
        parts += [f"Query {query_id}{change}{text}", markdown(*_move_rows(compared, of_query[query_id]))]
    if len(order) > shown:
        parts.append(f"The papers of {_count(len(order) - shown, 'more query', 'more queries')} are in moved.csv.")
    return parts


def _grades(compared: Comparisons, moves: Sequence[Move]) -> str:
    """Say what came and went by its judgments."""
    graded = {what: [compared.grade(move) for move in moves if move.what == what] for what in ("entered", "left")}
    known = {what: [grade for grade in grades if grade is not None] for what, grades in graded.items()}
    if not any(known.values()):
        return ""
    means = [f"{what} {sum(g) / len(g):.2f} ({len(g)} judged)" if g else f"{what} none" for what, g in known.items()]
    return f"; mean grade of those that {', '.join(means)}"


def _move_rows(compared: Comparisons, moves: Sequence[Move]) -> tuple[list[str], list[list[str]]]:
    names = [name for name in SCORES if any(side.get(name) is not None for m in moves for side in (m.before, m.after))]
    has_grades = compared.collection is not None
    rows = []
    for move in moves:
        grade = compared.grade(move)
        judged = ["—" if grade is None else str(grade)] if has_grades else []
        scores = [_change(move.before, move.after, name) for name in names]
        rows.append(
            [
                move.what,
                _change(move.before, move.after, "rank"),
                *judged,
                move.why,
                move.paper_id,
                _short(move.title),
                *scores,
            ]
        )
    labels = [_LABELS.get(name, name.removeprefix("sts_")) for name in names]
    return ["", "rank", *(["grade"] if has_grades else []), "why", "paper", "title", *labels], rows


def _change(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> str:
    """Return ``0.748 → 0.731``, or one value where both runs have the same."""
    texts = [_value_text(side.get(name)) if side else "—" for side in (before, after)]
    return texts[0] if texts[0] == texts[1] else " → ".join(texts)


def _value_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return "—" if value is None else str(value).removesuffix(" relevant").removesuffix(" relevance")


def _short(text: str, width: int = _WIDTH) -> str:
    """Return the beginning of a text of others, without what a terminal would act on."""
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
