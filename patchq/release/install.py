"""Install a release for whoever runs it: on this machine, or on all machines of a cluster.

Looked at first, then downloaded, verified, brought to every node; one link on each is switched
last. What fails before leaves what is installed as it is, and what was downloaded to go on from.
"""

from __future__ import annotations

import platform
import shutil
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.build.target import TARGETS, Target, find
from patchq.cluster import config, profile
from patchq.cluster.config import Cluster
from patchq.cluster.deploy import Bundle as Runner
from patchq.cluster.deploy import DeployReport, Wheel, deploy
from patchq.cluster.nodes import Reach
from patchq.cluster.profile import Profile
from patchq.cluster.table import NAME
from patchq.doctor.model import Check
from patchq.errors import PatchqError
from patchq.gitstore import files
from patchq.progress import SILENT, Progress
from patchq.release import bundle, fetch, installed, parts, preflight, tools, units, weights
from patchq.release.bundle import Bundle
from patchq.release.fetch import Offer
from patchq.release.installed import Given
from patchq.release.manifest import Manifest, TargetIs
from patchq.release.weights import Brought

DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Asked:
    """`what`: a number, a folder or an address; `base`: where numbers are; `packages`: a folder
    with the packages that the locks name; `signers`: whose releases are taken, None: as before."""

    what: str
    base: str | None = None
    cluster: Path | None = None
    packages: Path | None = None
    signers: Path | None = None
    offline: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class InstallReport:
    """`size`: bytes of the release; `checks`: what the machines say. With a dry run `deployed` and
    `brought` are empty. `unit`: the systemd unit, None where systemd does not run. `command`: where
    patchq is, None where the PATH leads to it."""

    manifest: Manifest
    source: str
    signer: str
    cluster: Cluster
    size: int
    checks: tuple[Check, ...]
    brought: tuple[Brought, ...] = ()
    deployed: DeployReport | None = None
    unit: Path | None = None
    command: Path | None = None


def install(asked: Asked, *, progress: Progress = SILENT) -> InstallReport:
    """Install a release, and make it the one that starts next.

    Raises PatchqError for what the user can mend, ProofFailed where the release is not what was
    signed or a machine cannot run it, Incomplete where something is not reached.
    """
    with installed.alone():
        source = fetch.find(asked.what, asked.base or _before(asked), offline=asked.offline)
        number = int(asked.what) if asked.what.isdecimal() else None
        signers = _signers(asked)
        offer = fetch.look(source, number, signers)
        fetch.standing(offer, signers)
        given = _cluster(asked, offer.manifest)
        target = _target(offer.manifest, given.cluster)
        checks = preflight.check(given.cluster, offer, progress)
        report = InstallReport(
            offer.manifest, source.told, offer.signer, given.cluster, offer.size, checks
        )
        if asked.dry_run:
            return report
        # Before anything is on a node: an uninstall has to know where.
        installed.keep(given)
        return _install(asked, report, offer, target, signers, progress)


def _install(
    asked: Asked,
    report: InstallReport,
    offer: Offer,
    target: TargetIs,
    signers: Path | None,
    progress: Progress,
) -> InstallReport:
    number, cluster, home = offer.manifest.number, report.cluster, installed.home()
    folder = home / "downloads" / str(number)
    found = fetch.bring(offer, folder, progress)
    fetch.verified(found, offer.source, signers)
    text, plain = _profile(found)
    staging = home / "models"
    with Reach(cluster) as reach:
        brought = weights.bring(
            reach, offer.manifest.models, staging, offline=asked.offline, progress=progress
        )
    places = {each.kind: weights.place(each) for each in offer.manifest.models}
    labels = _labels(offer.manifest, target) | installed.labels(number, plain.name, text, places)
    runner = Runner(
        _wheels(found, target, home / "downloads" / f"{number}.whole"),
        (folder / target.requirements).read_bytes(),
        target.python or find(target.name).python,
        labels,
        tells=(offer.sums["release.toml"],),
        packages=asked.packages,
    )
    deployed = deploy(cluster, runner, progress=progress)
    _settle(asked, offer, signers)
    program, command = tools.settle()
    unit = units.write(str(program))
    return replace(report, brought=brought, deployed=deployed, unit=unit, command=command)


def _before(asked: Asked) -> str | None:
    """Where numbers were found the last time; what is no number needs none."""
    return installed.source() if asked.what.isdecimal() else None


def _signers(asked: Asked) -> Path | None:
    """The file of known keys: the one given, else the one that install.sh brought."""
    if asked.signers is not None and not asked.signers.is_file():
        raise PatchqError(f"{asked.signers} does not exist", "name the file of known keys")
    kept = installed.home() / installed.SIGNERS
    return asked.signers or (kept if kept.is_file() else None)


def _cluster(asked: Asked, manifest: Manifest) -> Given:
    """The machines: those of the file given, of the install before, or this one alone."""
    if asked.cluster is not None:
        return installed.given(asked.cluster)
    if config.names(installed.home()):
        return Given(installed.cluster(), {})
    return installed.this_machine(_mine(manifest).name)


def _mine(manifest: Manifest) -> Target:
    """The target that is built for this machine. Raises PatchqError where there is none."""
    built = [find(each.name) for each in manifest.targets if each.wheels and each.name in TARGETS]
    fits = [each for each in built if each.machine == platform.machine()]
    chosen = [each for each in fits if each.gpu == DRIVER.exists()] or fits
    if not chosen:
        names = ", ".join(f"{each.name} ({each.machine})" for each in built) or "nothing"
        raise PatchqError(
            f"release {manifest.number} is not built for this machine ({platform.machine()})",
            f"it is for {names}; name such machines with --cluster FILE",
        )
    if not chosen[0].gpu or not preflight.alone_is_too_small(manifest, chosen[0]):
        return chosen[0]
    raise PatchqError(
        f"release {manifest.number} was tested on {len(manifest.tested)} machines, this is one",
        "describe them in a file (docs/install.md), and name it with --cluster FILE",
    )


def _target(manifest: Manifest, cluster: Cluster) -> TargetIs:
    for each in manifest.targets:
        if each.name == cluster.target and each.wheels:
            return each
    built = ", ".join(each.name for each in manifest.targets if each.wheels) or "nothing"
    raise PatchqError(
        f"release {manifest.number} is not built for {cluster.target}, which {cluster.name} takes",
        f"it is for {built}: correct `target` of the cluster, or take another release",
    )


def _profile(found: Bundle) -> tuple[str, Profile]:
    """The profile's text, and what it says."""
    name = found.manifest.profile
    data = (found.folder / bundle.PROFILE).read_bytes()
    if not NAME.fullmatch(name):
        raise PatchqError(f"release {found.number} has no profile", "take another release")
    try:
        text = data.decode("utf-8")
        return text, profile.parse(tomllib.loads(text), name, bundle.PROFILE)
    except ValueError as error:
        raise PatchqError(
            f"{bundle.PROFILE} is not valid TOML: {error}", "get it afresh"
        ) from error


def _labels(manifest: Manifest, target: TargetIs) -> dict[str, str]:
    """What `patchq cluster deploy` keeps of a build, of a release."""
    return {
        "target": target.name,
        "queue": manifest.queue,
        "base": manifest.base.release,
        "tree": manifest.tree,
        "lock": manifest.lock,
    }


def _wheels(found: Bundle, target: TargetIs, whole: Path) -> tuple[Wheel, ...]:
    """The target's wheels, each in one piece."""
    made: list[Wheel] = []
    for name in target.wheels:
        asset = found.manifest.asset(name)
        assert asset is not None, "the manifest was read"
        whole.mkdir(parents=True, exist_ok=True)
        made.append(Wheel(parts.join(found.folder, asset, whole / name), asset.sha256))
    return tuple(made)


def _settle(asked: Asked, offer: Offer, signers: Path | None) -> None:
    """Remember where it came from, and remove what was only needed to get here."""
    home = installed.home()
    if signers is not None:
        files.write(home / installed.SIGNERS, signers.read_bytes())
    if asked.what.isdecimal() and "@" not in offer.source.kept:  # no password is kept
        files.write(home / installed.SOURCE, f"{offer.source.kept}\n".encode())
    shutil.rmtree(home / "downloads", ignore_errors=True)
    shutil.rmtree(home / "models", ignore_errors=True)
