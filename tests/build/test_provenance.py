"""What stands beside a build: by the published types, the same bytes each time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf.json_format import MessageToDict, Parse
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from packageurl import PackageURL

from patchq.build.given import Given
from patchq.build.overlay import Wanted
from patchq.build.requirements import Locked, RequirementsLock
from patchq.build.run import build, verify
from patchq.build.target import find
from patchq.errors import PatchqError
from patchq.upstream.components import Component, Pins
from tests.build.test_components import Trees
from tests.build.wheels import INFO, METADATA, NAME, make, plain
from tests.support.kit import Kit
from tests.upstream.conftest import Site, entry

SPARK = find("spark")
RECORDS = ("build.json", "build.intoto.json", "build.cdx.json")
HEAD = "VLLM/vllm#7 @ " + "4" * 40


@pytest.fixture
def kit(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kit]:
    made = Kit(tmp_path / "kit")
    made.history.commit().write("vllm/a.py", b"1\n").write("flash/f.py", b"1\n").tag("v1")
    made.history.branch("p1", at="v1").commit().write("vllm/a.py", b"2\n")
    made.history.branch("f1", at="v1").commit().write("flash/f.py", b"2\n")
    metadata = METADATA.replace(
        b"Requires-Dist", b"License-Expression: Apache-2.0\nRequires-Dist: flash==9\nRequires-Dist"
    )
    wheel = make(tmp_path / NAME, {"vllm/a.py": b"1\n"}, info=INFO, metadata=metadata)
    flash = plain(tmp_path, "flash", "1.0", {"flash/f.py": b"1\n"}, licence="MIT")
    for package, path in (("vllm", wheel), ("flash", flash)):
        site.add(f"/files/{path.name}", path.read_bytes())
        site.add_package(package, entry(path.name, path.read_bytes()))
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple")
    yield made
    made.close()


@pytest.fixture
def given(kit: Kit) -> Given:
    @contextmanager
    def grow(component: Component) -> Iterator[Trees | None]:
        series = kit.series("v1", "f1")
        yield Trees(kit.store, kit.tree("v1"), kit.tree("f1"), series) if component.index else None

    pins = Pins(
        components=(
            Component("flash", "kernels", index="flash", version="1.0", modules=("flash",)),
            Component("spark", "moe", git="https://example.org/s", commit="d4438d49"),
        )
    )
    locked = RequirementsLock(
        ("for vllm 1.0",),
        (Locked("regex", "1!2", ("0" * 64,)), Locked("aiohttp", "3", ("1" * 64, "2" * 64))),
    )
    return Given(pins, "5" * 64, locked, "6" * 64, (), grow)


def built(kit: Kit, given: Given, tmp_path: Path, out: str = "out") -> dict[str, Any]:
    wanted = Wanted("vllm", "1.0", kit.tree("v1"), kit.tree("p1"))
    patches = (kit.patch("v1", "p1", pr=HEAD),)
    build(kit.store, wanted, SPARK, patches, tmp_path / out, tmp_path / "cache", given=given)
    return {name: json.loads((tmp_path / out / name).read_bytes()) for name in RECORDS}


def test_the_record_says_what_went_in_and_what_came_out(
    kit: Kit, given: Given, tmp_path: Path
) -> None:
    told = built(kit, given, tmp_path)["build.json"]
    assert told["lock"] == "5" * 64
    assert told["requirements"] == {
        "name": "requirements.spark.lock",
        "packages": 2,
        "sha256": "6" * 64,
    }
    assert told["runner"]["patches"][0]["prs"] == [HEAD]
    assert told["rewritten"] == [
        {"was": "flash==9", "now": "flash==1.0", "component": "flash", "why": "kernels"}
    ]
    assert [(each["name"], each["kind"]) for each in told["components"]] == [
        ("flash", "patched"),
        ("spark", "commit"),
    ]
    assert [each["name"].partition("-")[0] for each in told["outputs"]] == ["vllm", "flash"]
    assert len(told["inputs"]) == 2


def test_the_statement_is_of_the_published_types(kit: Kit, given: Given, tmp_path: Path) -> None:
    files = built(kit, given, tmp_path)
    text = json.dumps(files["build.intoto.json"])
    message: Any = Parse(text, statement_pb2.Statement())  # type: ignore[attr-defined]
    Statement.copy_from_pb(message).validate()
    outputs = files["build.json"]["outputs"]
    assert [(each.name, each.digest["sha256"]) for each in message.subject] == [
        (each["name"], each["sha256"]) for each in outputs
    ]
    assert message.predicate_type == "https://slsa.dev/provenance/v1"
    text = json.dumps(MessageToDict(message.predicate))
    provenance: Any = Parse(text, provenance_pb2.Provenance())  # type: ignore[attr-defined]
    parts = provenance.build_definition.resolved_dependencies
    for each in parts:
        ResourceDescriptor.copy_from_pb(each).validate()
    assert {"vllm 1.0", "vllm runner tree", NAME, "requirements.spark.lock", "spark"} <= {
        each.name for each in parts
    }
    assert provenance.run_details.builder.id == "urn:patchq:builder"


def test_the_bill_of_materials_is_cyclonedx(kit: Kit, given: Given, tmp_path: Path) -> None:
    bom = built(kit, given, tmp_path)["build.cdx.json"]
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bom)) is None
    by_name = {each["name"]: each for each in bom["components"]}
    assert set(by_name) == {"flash", "spark", "regex", "aiohttp"}
    own = bom["metadata"]["component"]
    assert own["licenses"] == [{"expression": "Apache-2.0"}]
    assert own["pedigree"]["patches"][0]["type"] == "backport"
    assert by_name["flash"]["licenses"] == [{"expression": "MIT"}]
    assert by_name["flash"]["pedigree"]["ancestors"][0]["version"] == "1.0"
    assert by_name["regex"]["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]
    assert len(by_name["aiohttp"]["externalReferences"]) == 2, "either wheel may be installed"
    for each in (own, *bom["components"]):
        if "purl" in each:
            name = PackageURL.from_string(each["purl"])
            assert (name.type, name.version) == ("pypi", each["version"])
    (root, *leaves) = bom["dependencies"]
    assert sorted(root["dependsOn"]) == sorted(each["ref"] for each in leaves)


def test_the_same_inputs_give_the_same_records(kit: Kit, given: Given, tmp_path: Path) -> None:
    built(kit, given, tmp_path, "one")
    built(kit, given, tmp_path, "two")
    for name in RECORDS:
        data = (tmp_path / "one" / name).read_bytes()
        assert (tmp_path / "two" / name).read_bytes() == data
        assert str(tmp_path).encode() not in data
        assert b"127.0.0.1" not in data, "no index by name"


def test_where_a_component_fails_nothing_comes_into_the_folder(
    kit: Kit, given: Given, tmp_path: Path
) -> None:
    """The runner's own wheel is made by then: it stays out until all is whole."""
    built(kit, given, tmp_path)
    out = tmp_path / "out"
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    flash, git = given.pins.components
    broken = Pins(components=(git, replace(flash, sha256="0" * 64)))
    with pytest.raises(PatchqError, match="pinned sha256"):
        built(kit, replace(given, pins=broken), tmp_path)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    with pytest.raises(PatchqError, match="pinned sha256"):
        built(kit, replace(given, pins=broken), tmp_path, "new")
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".*")), "and nothing is left beside it"


def test_another_lock_is_another_serial_number(kit: Kit, given: Given, tmp_path: Path) -> None:
    first = built(kit, given, tmp_path, "one")["build.cdx.json"]
    other = RequirementsLock((), (Locked("regex", "2", ("0" * 64,)),))
    second = built(kit, replace(given, requirements=other), tmp_path, "two")["build.cdx.json"]
    assert first["serialNumber"] != second["serialNumber"]


def test_verify_compares_all_of_it(kit: Kit, given: Given, tmp_path: Path) -> None:
    built(kit, given, tmp_path)
    wanted = Wanted("vllm", "1.0", kit.tree("v1"), kit.tree("p1"))
    patches = (kit.patch("v1", "p1", pr=HEAD),)
    out, cache = tmp_path / "out", tmp_path / "cache"
    (file,) = out.glob("vllm-*.whl")

    def again(given: Given) -> Any:
        return verify(kit.store, wanted, SPARK, patches, file, cache, given=given)

    report = again(given)
    assert report.same and len(report.compared) == 5 and report.exit_code == 0
    other = again(replace(given, lock="7" * 64))
    assert not other.compared["build.json"] and other.exit_code == 5
    (flash,) = out.glob("flash-*.whl")
    flash.write_bytes(flash.read_bytes() + b"\0")
    (out / "build.cdx.json").unlink()
    odd = again(given)
    assert [name for name, same in odd.compared.items() if not same] == [flash.name]
    assert "build.cdx.json" not in odd.compared, "what is not there is not compared"
