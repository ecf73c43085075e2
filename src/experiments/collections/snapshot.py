"""A snapshot made by ``litgrade collect``: the papers that sources gave for each query, frozen.

It is a folder in the collection layout. Judgments can be added as qrels/SPLIT.tsv; without any, nothing is measured.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from experiments.collections import Collection
from experiments.collections.beir.layout import read_snapshot
from experiments.snapshots import check_files
from pipeline.errors import UserError


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Loader:
    """A snapshot in a folder."""

    path: Path
    split: str = "test"  #: which judgments: qrels/<split>.tsv, where there are any

    def load(self) -> Collection:
        """Read the snapshot; raise ``UserError`` where it is not finished, or not what was frozen."""
        check_files(self.path)
        splits = sorted({path.name.removesuffix(".gz") for path in (self.path / "qrels").glob("*.tsv*")})
        if splits and f"{self.split}.tsv" not in splits:
            raise UserError(f"{self.path / 'qrels'}: no {self.split}.tsv; expected one of {', '.join(splits)}")
        return read_snapshot(self.path, self.split)
