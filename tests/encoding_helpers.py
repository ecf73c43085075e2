"""What the tests of encoding share: texts of several lengths, and the settings of a tiny model."""

import random
from pathlib import Path
from typing import Any

from pipeline.encoding import Encoder
from pipeline.models import ModelFiles

TEXTS = [" ".join(random.Random(i).choices(["gene", "wing", "x", "flutter speed"], k=1 + i % 9)) for i in range(60)]


def encoder(model: Path, store: Path, **settings: Any) -> Encoder:
    """Return how the tiny model in this folder is run."""
    files = ModelFiles(name="tiny", folder=store.parent, path=model)
    return Encoder(model=files, store=store, **{"max_tokens": 64, "device": "cpu", **settings})
