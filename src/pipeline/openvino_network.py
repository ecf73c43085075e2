"""A transformer run by OpenVINO in place of torch: converted in memory, the same function of a padded batch.

OpenVINO is told to compute in the precision asked for (on recent CPUs it would take bf16 by itself). Its values hang
neither on the number of texts in a batch nor on the number of threads.
"""

from __future__ import annotations

import importlib.metadata
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import UserError

_HINTS = {"fp32": "f32", "bf16": "bf16"}  # our word for a precision -> OpenVINO's

Run = Callable[[Mapping[str, Any], str], npt.NDArray[np.float32]]  #: (padded batch, name of an output) -> its values


def installed_version() -> str:
    """Return the version of OpenVINO that is installed."""
    try:
        return importlib.metadata.version("openvino")
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(
            "backend=openvino: the package openvino is not installed; pip install 'litgrade[openvino]', "
            "or use backend=torch"
        ) from error


def converted(transformer: Any, tokenizer: Any, precision: str) -> Run:
    """Convert a transformer of torch by OpenVINO's own converter and compile it for the CPU.

    It is converted in each process that has something to compute: that takes seconds, a stored copy as much disk as the
    weights.
    """
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type] # else each import is reported to its makers
    import openvino
    from openvino import properties
    from transformers.utils import logging as transformers_logging

    example = tokenizer(["any", "two texts"], padding=True, return_tensors="pt")
    told = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # tracing touches settings of the model that nobody set
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the tracer, on branches that are the same for all batches
            model = openvino.convert_model(transformer, example_input=dict(example))
    finally:
        transformers_logging.set_verbosity(told)
    settings = {properties.hint.inference_precision: _HINTS[precision]}
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    inputs = [node.any_name for node in model.inputs]

    def run(batch: Mapping[str, Any], output: str) -> npt.NDArray[np.float32]:
        values: npt.NDArray[np.float32] = compiled({name: batch[name].numpy() for name in inputs})[output]
        return values

    return run
