"""A git repository with one commit a release, made from the source archives of vLLM."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.measure import fresh, git

_GENERATED = {"PKG-INFO", "setup.cfg", "vllm/_version.py"}


def archive_of(archives: Path, version: str) -> Path:
    """The archive of `version` in the folder `archives`; fetched by patchq where it is missing.

    Raises patchq's PatchqError where the package index does not give it.
    """
    found = archives / f"vllm-{version}.tar.gz"
    if found.is_file():
        return found
    from patchq.upstream import download, index, pipconf

    settings = pipconf.read_settings()
    sdist = index.choose(index.look_up("vllm", settings, archives), version)
    with download.alone(sdist, archives):
        return download.fetch(sdist, archives, settings)


def repository(work: Path, archives: Path, versions: list[str], env: Mapping[str, str]) -> Path:
    """A bare repository with a tag ``v<version>`` for each; made once, then found again."""
    repo = work / ("releases-" + "-".join(versions) + ".git")
    if (repo / "bench-complete").exists():
        return repo
    for version in versions:
        archive_of(archives, version)
    fresh(repo)
    git("init", "-q", "--bare", "-b", "main", ".", cwd=repo, env=env)
    git("config", "core.attributesFile", "/dev/null", cwd=repo, env=env)
    with subprocess.Popen(
        ["git", "fast-import", "--quiet"], cwd=repo, env=dict(env), stdin=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        for version in versions:
            for piece in _commit(archive_of(archives, version), version):
                child.stdin.write(piece)
        child.stdin.close()
        if child.wait():
            raise RuntimeError("git fast-import failed")
    # As a clone would have it: one pack with good deltas.
    git("repack", "-adfq", "--window=10", "--depth=50", cwd=repo, env=env)
    (repo / "bench-complete").touch()
    return repo


def _commit(archive: Path, version: str) -> Iterator[bytes]:
    message = f"vLLM {version}".encode()
    yield b"commit refs/heads/main\n"
    yield b"committer Bench <bench@example.invalid> 1767225600 +0000\n"
    yield b"data %d\n%s\n" % (len(message), message)
    yield b"deleteall\n"
    with tarfile.open(archive, "r|gz") as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            if path in _GENERATED or ".egg-info/" in path:
                continue
            if member.isfile():
                file = tar.extractfile(member)
                assert file is not None
                content = file.read()
                mode = b"755" if member.mode & 0o111 else b"644"
            elif member.issym():
                content, mode = member.linkname.encode(), b"120000"
            else:
                continue
            yield b"M %s inline %s\n" % (mode, _quote(path))
            yield b"data %d\n" % len(content)
            yield content
            yield b"\n"
    yield b"reset refs/tags/v%s\nfrom refs/heads/main\n\n" % version.encode()


def _quote(path: str) -> bytes:
    return b'"' + path.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def listing(repo: Path, ref: str, env: Mapping[str, str]) -> dict[bytes, tuple[bytes, bytes]]:
    """Path -> (mode, blob id) of every file of `ref`."""
    return entries(git("ls-tree", "-r", "-z", "--full-tree", ref, cwd=repo, env=env))


def entries(rows: bytes) -> dict[bytes, tuple[bytes, bytes]]:
    """What ``git ls-tree -r -z`` wrote: path -> (mode, blob id)."""
    found = {}
    for line in rows.split(b"\0"):
        if line:
            head, _, path = line.partition(b"\t")
            mode, _, blob = head.split(b" ")
            found[path] = (mode, blob)
    return found


def narrowed(
    repo: Path, target: Path, tips: Mapping[str, str], keep: set[bytes], env: Mapping[str, str]
) -> None:
    """Write to bare `target` the chains of `repo` with the files `keep` only.

    `tips` maps a ref to be made onto a ``parent-ref..tip`` range or a single commit (which then
    becomes a root). Messages are kept. Order matters: a range's parent must stand before it.
    """
    fresh(target)
    git("init", "-q", "--bare", "-b", "main", ".", cwd=target, env=env)
    scratch = dict(env) | {"GIT_INDEX_FILE": str(target / "narrow.index")}
    made: dict[str, str] = {}
    for ref, what in tips.items():
        base, dots, tip = what.rpartition("..")
        if dots:
            commits = git("rev-list", "--reverse", what, cwd=repo, env=env).decode().split()
            parent = made[git("rev-parse", f"{base}^0", cwd=repo, env=env).decode().strip()]
        else:
            commits = [git("rev-parse", f"{tip}^0", cwd=repo, env=env).decode().strip()]
            parent = next(reversed(made.values()), "")
        for commit in commits:
            rows = [
                b"%s %s\t%s\0" % (mode, blob, path)
                for path, (mode, blob) in listing(repo, commit, env).items()
                if path in keep
            ]
            git("read-tree", "--empty", cwd=repo, env=scratch)
            git("update-index", "-z", "--index-info", cwd=repo, env=scratch, data=b"".join(rows))
            tree = git("write-tree", cwd=repo, env=scratch).decode().strip()
            message = git("log", "-1", "--format=%B", commit, cwd=repo, env=env)
            onto = ["-p", parent] if parent else []
            parent = (
                git("commit-tree", tree, *onto, cwd=repo, env=env, data=message).decode().strip()
            )
            made[commit] = parent
        git("push", "-q", str(target), f"{parent}:{ref}", cwd=repo, env=env)
    git("repack", "-adfq", "--window=10", "--depth=50", cwd=target, env=env)
