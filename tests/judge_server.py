"""How a server answers RAGAS in tests: statements, verdicts on them, and a rating."""

from __future__ import annotations

import json
from typing import Any

from endpoint import Reply, completion


def asked_for(body: dict[str, Any]) -> str:
    """Which of RAGAS' three questions a request holds, by the schema of its answer; '' for another request."""
    text = json.dumps(body)  # in the messages or in response_format
    names = ("NLIStatementOutput", "StatementGeneratorOutput", "DiscreteResponseModel")
    return next((name for name in names if name in text), "")


def verdicts(*given: int) -> str:
    return json.dumps(
        {"statements": [{"statement": f"s{i}", "reason": "r", "verdict": v} for i, v in enumerate(given)]}
    )


def judge_reply(body: dict[str, Any], *given: int, rating: str = "2") -> Reply:
    """Two statements, these verdicts on them (by default one of two is supported), and the rating."""
    contents = {
        "StatementGeneratorOutput": json.dumps({"statements": ["s0", "s1"]}),
        "NLIStatementOutput": verdicts(*(given or (1, 0))),
        "DiscreteResponseModel": json.dumps({"reason": "r", "value": rating}),
    }
    return Reply(completion(contents[asked_for(body)]))
