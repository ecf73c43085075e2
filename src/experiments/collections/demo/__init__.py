"""The bundled demo collection: 20 queries and 300 papers, all made up (see the README beside this file)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from experiments.collections import Collection
from experiments.collections.beir import read_collection

FOLDER = Path(__file__).parent
NOTICE = "The demo collection is made up for demonstration; its figures say nothing about real performance."


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Loader:
    """The demo collection; there is nothing to choose."""

    def load(self) -> Collection:
        """Read the files beside this module."""
        return replace(read_collection(FOLDER), name="demo (made up)", notice=NOTICE)
