"""`patchq release verify`: whatever is not as it was signed and tagged is named, in one line."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patchq.release import bundle, manifest, sign, sums
from tests.release.shop import Shop
from tests.support.inside import Said, call
from tests.upstream.conftest import Site
from tests.upstream.conftest import site as site


@pytest.fixture
def cut(shop: Shop) -> Shop:
    shop.cut()
    return shop


def refused(shop: Shop) -> dict[str, str]:
    """What does not hold, by name."""
    said = shop.call("release", "verify", "1", "--json", code=5).json
    assert said["schema"] == "patchq.release-verify/1" and said["ok"] is False
    return {each["name"]: each["detail"] for each in said["checks"] if not each["ok"]}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_each_file_altered_is_refused_by_name(cut: Shop, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(cut.bundle, kept)
    names = sorted(path.name for path in kept.iterdir())
    assert len(names) == 15
    for name in names:
        flip(cut.bundle / name)
        bad = refused(cut)
        if name == "SHA256SUMS":
            assert bad["signature"] == "it is not over these sums"
        elif name == "SHA256SUMS.sig":
            assert set(bad) == {"signature"}
        else:
            assert bad == {"sums": f"{name} is not what was signed"}
        shutil.copy2(kept / name, cut.bundle / name)
    cut.call("release", "verify", "1")


def test_what_is_missing_or_was_added_is_named(cut: Shop) -> None:
    (cut.bundle / "sbom.json").unlink()
    (cut.bundle / "\x1b[31mred").write_text("x")
    said = cut.call("release", "verify", "1", code=5)
    assert "NOT sums: \\x1b[31mred is not among the sums; sbom.json is missing" in said.out
    assert "do not use it" in said.out
    (cut.bundle / "SHA256SUMS").unlink()
    assert "holds no release" in cut.call("release", "verify", "1", code=1).err


def test_a_link_is_no_file_of_a_release(cut: Shop, tmp_path: Path) -> None:
    (cut.bundle / "sbom.json").replace(tmp_path / "elsewhere")
    (cut.bundle / "sbom.json").symlink_to(tmp_path / "elsewhere")
    assert refused(cut) == {"sums": "sbom.json is missing"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (None, "is by a key that allowed_signers does not name"),
        ('namespaces="patchq-release",valid-before="20200101"', "as expired"),
        ('namespaces="git"', "does not have for releases"),
    ],
)
def test_a_signature_by_a_key_that_does_not_count(
    cut: Shop, options: str | None, says: str
) -> None:
    if options is None:
        cut.key.unlink()
        cut.keys()
    else:
        cut.signers(options)
    assert says in refused(cut)["signature"]


def test_a_signature_for_something_else_does_not_count(cut: Shop) -> None:
    import subprocess

    path = cut.bundle / "SHA256SUMS"
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", cut.key, "-n", "file", path]
    (cut.bundle / "SHA256SUMS.sig").unlink()
    subprocess.run(command, check=True, capture_output=True)
    assert refused(cut)["signature"] == "it was not made for a release"


def signed_anew(shop: Shop, change: Callable[[Path], None]) -> None:
    """Changed by somebody who has the key, all sums right."""
    place = shop.bundle
    change(place)
    found = manifest.read((place / "release.toml").read_bytes())
    text = (place / "release.toml").read_text()
    for asset in found.assets:
        path = place / asset.name
        text = text.replace(asset.sha256, sums.sha256(path))
        old = f'name = "{asset.name}"\nsize = {asset.size}\n'
        assert old in text
        text = text.replace(old, f'name = "{asset.name}"\nsize = {path.stat().st_size}\n')
    (place / "release.toml").write_text(text)
    names = [path.name for path in place.iterdir() if not path.name.startswith("SHA256")]
    digests = {name: sums.sha256(place / name) for name in names}
    (place / "SHA256SUMS").write_bytes(sums.write(digests))
    sign.sign(place / "SHA256SUMS", str(shop.key))


def repacked(path: Path, change: Callable[[str, bytes], bytes]) -> None:
    out = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=out, mode="w") as new:
        for info in old:
            file = old.extractfile(info)
            data = change(info.name, file.read() if file else b"")
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))
    path.write_bytes(gzip.compress(out.getvalue()))


def series(place: Path) -> None:
    repacked(place / bundle.SERIES, lambda _, data: data.replace(b"+2\n", b"+9\n"))


def another_runners_evidence(place: Path) -> None:
    def change(_: str, data: bytes) -> bytes:
        value = json.loads(data)
        value["runner"]["lock"] = "0" * 64
        return json.dumps(value).encode()

    repacked(place / bundle.EVIDENCE, change)


def unbound_evidence(place: Path) -> None:
    before = list(archive_sums(place))
    repacked(
        place / bundle.EVIDENCE,
        lambda _, data: json.dumps({**json.loads(data), "runner": None}).encode(),
    )
    text = (place / "release.toml").read_text()
    for old, new in zip(before, archive_sums(place), strict=True):
        text = text.replace(old, new)
    (place / "release.toml").write_text(text)


def archive_sums(place: Path) -> Iterator[str]:
    import hashlib

    with tarfile.open(place / bundle.EVIDENCE) as tar:
        for info in tar:
            file = tar.extractfile(info)
            assert file is not None
            yield hashlib.sha256(file.read()).hexdigest()


def record(place: Path) -> None:
    path = place / bundle.RECORD
    path.write_text(path.read_text().replace('"sha256": "', '"sha256": "0', 1))
    text = json.loads((place / bundle.RECORD).read_text())
    text["outputs"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(text))


def lock(place: Path) -> None:
    path = place / "release.toml"
    path.write_text(path.read_text().replace('"someone/m"', '"somebody/m"'))


@pytest.mark.parametrize(
    ("change", "name", "says"),
    [
        (series, "series", "the tagged series gives another archive"),
        (another_runners_evidence, "evidence", "holds other evidence than the gate has read"),
        (unbound_evidence, "evidence", "is bound to nothing"),
        (record, "artifact", "build.json is about other wheels"),
        (lock, "base", "the repository's runner lock is another"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_what_was_signed_is_held_against_the_repository(
    cut: Shop, change: Callable[[Path], None], name: str, says: str
) -> None:
    signed_anew(cut, change)
    bad = refused(cut)
    assert says in bad[name], bad
    assert "releases/1.toml at release-1 says otherwise" in bad["repository"]


def test_a_repository_without_the_tag_says_so(cut: Shop) -> None:
    cut.git("tag", "-d", "release-1")
    assert refused(cut) == {"repository": "it has no tag release-1: `git fetch --tags` brings it"}


def test_assets_in_parts(shop: Shop, tmp_path: Path) -> None:
    from patchq.carry.workspace import read_queue
    from patchq.release.cut import cut
    from patchq.render.release_notes import notes

    queue = read_queue(shop.project, None)
    report = cut(queue, notes, key=shop.key, part=40_000)
    assert report.manifest is not None
    split = [asset for asset in report.manifest.assets if asset.parts]
    asset = next(each for each in split if each.name == "evidence.tar.gz")
    assert [part.name for part in asset.parts] == [
        *("evidence.tar.gz.part-01", "evidence.tar.gz.part-02"),
    ]
    shop.call("release", "verify", "1")
    from patchq.errors import PatchqError
    from patchq.release import parts

    whole = parts.join(shop.bundle, asset, tmp_path / asset.name)
    assert sums.sha256(whole) == asset.sha256
    one, two = (shop.bundle / part.name for part in asset.parts)
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    assert set(refused(shop)) == {"sums"}
    with pytest.raises(PatchqError, match="do not make up"):
        parts.join(shop.bundle, asset, tmp_path / "again")
    assert not (tmp_path / "again").exists() and not list(tmp_path.glob(".again*"))


def test_a_manifest_of_a_newer_patchq(cut: Shop) -> None:
    path = cut.bundle / "release.toml"
    path.write_text(path.read_text().replace("patchq.release/1", "patchq.release/7"))
    names = [each.name for each in cut.bundle.iterdir() if not each.name.startswith("SHA256")]
    digests = {name: sums.sha256(cut.bundle / name) for name in names}
    (cut.bundle / "SHA256SUMS").write_bytes(sums.write(digests))
    sign.sign(cut.bundle / "SHA256SUMS", str(cut.key))
    bad = refused(cut)
    assert bad == {
        "manifest": "release.toml is of a newer patchq: it is patchq.release/7, this one knows"
        " patchq.release/1"
    }


def outside(folder: Path, *args: str, code: int) -> Said:
    return call(folder, "release", "verify", *args, code=code)


def test_a_folder_or_an_address_and_no_repository(cut: Shop, tmp_path: Path, site: Site) -> None:
    """As a user has it: the keys in a file, the release somewhere."""
    place = tmp_path / "away"
    place.mkdir()
    signers = place / "keys"
    shutil.copy2(cut.root / "releases/allowed_signers", signers)
    said = outside(place, str(cut.bundle), "--signers", str(signers), "--json", code=0).json
    assert [each["name"] for each in said["checks"]] == [
        *("signature", "sums", "manifest", "parts", "artifact", "evidence", "withdrawn"),
    ]
    assert "nobody's key is known" in outside(place, str(cut.bundle), code=5).out
    assert "say it with --from" in outside(place, "1", code=1).err
    for path in cut.bundle.iterdir():
        site.add(f"/releases/1/{path.name}", path.read_bytes())
    address = f"{site.url}/releases"
    outside(place, f"{address}/1", "--signers", str(signers), code=0)
    outside(place, "1", "--from", address, "--signers", str(signers), code=0)
    site.replies["/releases/1/sbom.json"].data += b" "
    outside(place, f"{address}/1", "--signers", str(signers), code=1)
    site.replies["/releases/1/release.toml"].data += b" "
    said_ = outside(place, f"{address}/1", "--signers", str(signers), code=5)
    assert "release.toml is not what was signed" in said_.err


def test_a_bundle_that_is_not_here(cut: Shop) -> None:
    shutil.rmtree(cut.bundle)
    assert "say with --from where it is" in cut.call("release", "verify", "1", code=1).err


def test_a_release_that_was_withdrawn(cut: Shop, tmp_path: Path) -> None:
    """In the repository, and as files beside the others; a mark that nobody known signed, too."""
    from patchq.release import withdraw

    digest = sums.sha256(cut.bundle / "release.toml")
    text = withdraw.write(withdraw.Withdrawal(1, "it spins", "2026-12-01T00:00:00Z", digest))
    (tmp_path / "mark").write_bytes(text)
    signature = sign.sign(tmp_path / "mark", str(cut.key)).read_bytes()
    mark = withdraw.Mark(text, signature)
    (cut.root / withdraw.FILE).write_bytes(withdraw.record({1: mark}))
    assert "release 1 was withdrawn: it spins" in refused(cut)["withdrawn"]
    assert "withdrawn: it spins" in cut.call("release", "list").out
    assert cut.call("release", "show", "1").out.startswith("WITHDRAWN: it spins")
    (cut.root / withdraw.FILE).unlink()
    (cut.bundle / "WITHDRAWN").write_bytes(text)
    (cut.bundle / "WITHDRAWN.sig").write_bytes(signature)
    assert set(refused(cut)) == {"withdrawn"}
    (cut.bundle / "WITHDRAWN.sig").write_bytes(b"x")
    assert "the mark does not hold" in refused(cut)["withdrawn"]
