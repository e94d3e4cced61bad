"""Releases as `patchq release cut` makes them, of a wheel whose `vllm` is the stand-in; and a hub."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import patchq
from patchq.gitstore.objects import blob_id
from patchq.release import bundle, manifest, own, parts, sign, sums
from patchq.release.manifest import Asset, Base, GateIs, Manifest, ModelIs, TargetIs
from patchq.release.withdraw import MARKER, Withdrawal, write
from tests.support import here
from tests.support.fleet import PYTHON, Fleet, standin_wheel
from tests.support.sshd import free_port
from tests.upstream.conftest import Site

SCRIPT = Path(patchq.__file__).parent / "release/install.sh"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROFILE = """\
model = "tiny"
served_name = "{name}"
[flags]
enforce-eager = true
[limits]
ready = 60
"""
MODEL = ModelIs(kind="model", name="tiny", repository="someone/tiny", revision=COMMIT[:8])


class Press:
    """Makes signed releases in `folder`, each in a folder release-N."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "releases"
        self.key = folder / "key"
        self.signers = folder / "allowed_signers"
        self.ports = free_port(), free_port()
        folder.mkdir(parents=True, exist_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.key)]
        subprocess.run(command, check=True)
        public = self.key.with_suffix(".pub").read_text().strip()
        self.signers.write_text(f'release@example.org namespaces="{sign.NAMESPACE}" {public}\n')

    def place(self, number: int) -> Path:
        return self.folder / f"release-{number}"

    def cut(
        self,
        number: int,
        *,
        models: Sequence[ModelIs] = (),
        lock: bytes = b"# nothing\n",
        target: TargetIs | None = None,
        more: Mapping[str, bytes] | None = None,
        part: int = parts.SIZE,
        profile: str = PROFILE,
        **fields: Any,
    ) -> Path:
        """Release `number`; `more`: other files of it; an asset above `part` bytes comes in parts."""
        place = self.place(number)
        place.mkdir(parents=True)
        made = self.folder.parent / f"made-{number}"
        wheel = standin_wheel(made, f"{number}.0")
        files = {
            bundle.PROFILE: profile.format(name=f"tiny-{number}").encode(),
            bundle.NOTES: f"# Release {number}\n".encode(),
            "requirements.cpu.lock": lock,
            **(more or {}),
        }
        for name, data in files.items():
            (made / name).write_bytes(data)
        assets = [parts.put(made / name, place, name, part) for name in (wheel.name, *files)]
        locked = hashlib.sha256(lock).hexdigest()
        target = target or TargetIs(
            name="cpu",
            requirements="requirements.cpu.lock",
            sha256=locked,
            wheels=(wheel.name,),
            python="3.11",
            machine="x86_64",
        )
        self.seal(
            Manifest(
                number=number,
                date="2026-03-04T05:06:07Z",
                queue="engine",
                base=Base("1.0", "0" * 40),
                tree="1" * 40,
                lock=hashlib.sha256(str(number).encode()).hexdigest(),
                patches=(),
                assets=tuple(sorted(assets, key=lambda each: each.name)),
                targets=(target,),
                models=tuple(models),
                gate=GateIs(True),
                profile="tiny",
                **fields,
            )
        )
        return place

    def installer(self) -> bytes:
        """install.sh as a release has it: with the keys."""
        return SCRIPT.read_bytes().replace(b"@ALLOWED_SIGNERS@", self.signers.read_bytes().strip())

    def whole(
        self, number: int, ours: bytes, lock: bytes, more: Mapping[str, bytes] | None = None
    ) -> Path:
        """Release `number` with patchq itself, whose lock is `ours`, and its installer."""
        wheel = self.folder.parent / own.name()
        wheel.unlink(missing_ok=True)
        own.write(wheel)
        brings = {
            wheel.name: wheel.read_bytes(),
            bundle.OWN_LOCK: ours,
            bundle.INSTALLER: self.installer(),
        }
        return self.cut(number, lock=lock, more={**brings, **(more or {})})

    def seal(self, made: Manifest, data: bytes | None = None) -> None:
        """Write what says and signs it. `data`: other bytes for the manifest."""
        place = self.place(made.number)
        (place / manifest.MANIFEST).write_bytes(manifest.write(made) if data is None else data)
        own = (manifest.SUMS, manifest.SIGNATURE)
        digests = {path.name: sums.sha256(path) for path in place.iterdir() if path.name not in own}
        (place / manifest.SUMS).write_bytes(sums.write(digests))
        sign.sign(place / manifest.SUMS, str(self.key))

    def read(self, number: int) -> Manifest:
        return manifest.read((self.place(number) / manifest.MANIFEST).read_bytes())

    def withdraw(self, number: int, why: str, last_good: int | None) -> None:
        place = self.place(number)
        digest = sums.sha256(place / manifest.MANIFEST)
        mark = place / MARKER
        mark.write_bytes(write(Withdrawal(number, why, "2026-03-05T00:00:00Z", digest, last_good)))
        sign.sign(mark, str(self.key))

    def serve(self, site: Site, number: int) -> str:
        """Put release `number` on a site; the address below which releases are."""
        for path in self.place(number).iterdir():
            site.add(f"/releases/release-{number}/{path.name}", path.read_bytes(), etag='"1"')
        return f"{site.url}/releases"

    def cluster(self, python: str = PYTHON) -> Path:
        """The file of a cluster that is this machine, with an environment that is there."""
        path = self.folder.parent / "here.toml"
        port, master = self.ports
        path.write_text(here.CLUSTER.format(port=port, master=master, python=python))
        return path

    def fleet(self, nodes: Fleet) -> Path:
        """The file of a fleet's cluster, at ports that no other test has."""
        nodes.port, nodes.master = self.ports
        nodes.cluster()
        return nodes.root / "ci/clusters/two.toml"


class Hub:
    """A hub of models on a site: its API, and the files; large ones have a sha256, as there."""

    LARGE = 1000

    def __init__(self, site: Site) -> None:
        self.site = site

    def add(self, repository: str, files: Mapping[str, bytes], commit: str = COMMIT) -> None:
        listed = []
        for path, data in files.items():
            entry: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": blob_id(data)}
            if len(data) >= self.LARGE:
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            listed.append(entry)
            self.site.add(f"/{repository}/resolve/{commit}/{path}", data, etag='"1"')
        said = json.dumps({"id": repository, "sha": commit, "siblings": listed}).encode()
        for name in (commit, commit[:8]):
            self.site.add(f"/api/models/{repository}/revision/{name}", said)


def asset(made: Manifest, name: str) -> Asset:
    found = made.asset(name)
    assert found is not None
    return found
