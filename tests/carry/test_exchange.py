"""The small steps on the disk: each does what it says, or says what it cannot."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from patchq.carry import exchange
from patchq.errors import PatchqError


def test_swap_exchanges_two_folders_in_one_call(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    exchange.swap(a, b)
    assert ((a / "name").read_text(), (b / "name").read_text()) == ("b", "a")


def test_swap_of_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError) as caught:
        exchange.swap(tmp_path / "a", tmp_path / "b")
    assert caught.value.filename == str(tmp_path / "a")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL])
def test_a_file_system_that_cannot_swap_is_told_apart(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ctypes

    class Library:
        @staticmethod
        def renameat2(*_arguments: object) -> int:
            ctypes.set_errno(code)
            return -1

        renamex_np = renameat2

    monkeypatch.setattr(ctypes, "CDLL", lambda *_a, **_k: Library)
    with pytest.raises(exchange.ExchangeUnsupported):
        exchange.swap(tmp_path / "a", tmp_path / "b")


def test_a_c_library_without_the_call_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ctypes

    monkeypatch.setattr(ctypes, "CDLL", lambda *_a, **_k: object())
    with pytest.raises(exchange.ExchangeUnsupported):
        exchange.swap(tmp_path / "a", tmp_path / "b")


def test_write_new_writes_all_and_never_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, bytes(data[:3])))
    exchange.write_new(tmp_path / "f", b"0123456789")
    assert (tmp_path / "f").read_bytes() == b"0123456789"
    with pytest.raises(FileExistsError):
        exchange.write_new(tmp_path / "f", b"other")


def test_write_new_gives_the_mode_whatever_the_umask(tmp_path: Path) -> None:
    exchange.write_new(tmp_path / "f", b"", 0o666)
    exchange.write_new(tmp_path / "g", b"")
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o666
    assert (tmp_path / "g").stat().st_mode & 0o777 == 0o644


def test_copy_tree_links_what_stays(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    (source / "sub").mkdir(parents=True, mode=0o750)
    (source / "emptied").mkdir()
    (source / "empty").mkdir()
    for name in ("keep", "change", "sub/keep", "emptied/gone"):
        (source / name).write_text(name)
    (source / "link").symlink_to("nowhere")
    exchange.copy_tree(
        source,
        target,
        {"change": (b"new", 0o600), "emptied/gone": None, "fresh/one": (b"1", None)},
    )
    assert {path for path, _ in exchange.walk(target)} == {
        *("change", "empty", "fresh", "fresh/one", "keep", "link", "sub", "sub/keep"),
    }
    for kept in ("keep", "sub/keep"):
        assert (source / kept).samefile(target / kept)
    assert (target / "link").readlink() == Path("nowhere")
    assert (target / "sub").stat().st_mode & 0o777 == 0o750
    assert (target / "change").stat().st_mode & 0o777 == 0o600
    assert (source / "change").read_text() == "change"


def test_copy_tree_copies_with_times_where_it_cannot_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    source, target = tmp_path / "s", tmp_path / "t"
    source.mkdir()
    (source / "keep").write_text("kept")
    (source / "keep").chmod(0o444)
    os.utime(source / "keep", ns=(1, 2_000_000_003))
    (source / "link").symlink_to("keep")
    exchange.copy_tree(source, target, {})
    found = (target / "keep").stat()
    assert (target / "keep").read_text() == "kept"
    assert (found.st_mtime_ns, found.st_mode & 0o777) == (2_000_000_003, 0o444)
    assert (target / "link").readlink() == Path("keep")
    os.mkfifo(source / "pipe")
    with pytest.raises(PermissionError):
        exchange.copy_tree(source, tmp_path / "u", {})


def test_sync_takes_many_files(tmp_path: Path) -> None:
    paths = [tmp_path / str(n) for n in range(100)]
    for path in paths:
        path.write_bytes(b"x")
    exchange.sync(paths)
    with pytest.raises(FileNotFoundError):
        exchange.sync([*paths, tmp_path / "missing"])


def test_remove_tree_follows_no_link_and_takes_locked_folders(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("stays")
    tree = tmp_path / "tree"
    (tree / "locked").mkdir(parents=True)
    (tree / "locked/f").write_text("goes")
    (tree / "out").symlink_to(outside)
    (tree / "locked").chmod(0o555)
    exchange.remove_tree(tree)
    exchange.remove_tree(tree)
    assert not tree.exists()
    assert (outside / "f").read_text() == "stays"


def test_remove_empty_stops_at_the_first_full_folder(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/f").write_text("")
    exchange.remove_empty(tmp_path / "a/b/c", stop=tmp_path)
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["f"]


def test_pack_and_unpack(tmp_path: Path) -> None:
    bodies = {exchange.sha256(b): b for b in (b"", b"one", b"two" * 1000, bytes(range(256)))}
    packed, places = exchange.pack(bodies)
    path = tmp_path / "bytes"
    path.write_bytes(packed)
    assert {key: exchange.unpack(path, places, key) for key in places} == bodies
    with pytest.raises(PatchqError, match="does not hold"):
        exchange.unpack(path, places, "0" * 64)
    first, *_, last = bodies
    with pytest.raises(PatchqError, match="is damaged"):
        exchange.unpack(path, {first: places[last]}, first)
    path.write_bytes(packed[:-3])
    with pytest.raises(PatchqError, match="does not hold"):
        exchange.unpack(path, places, last)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "make that file system writable"),
        (errno.EACCES, "writable for you"),
        (errno.EIO, "see to that file"),
    ],
)
def test_a_disk_that_refuses_is_a_sentence(code: int, remedy: str) -> None:
    with pytest.raises(PatchqError) as caught, exchange.explained("nothing was changed"):
        raise OSError(code, os.strerror(code), "/some/where")
    assert caught.value.message == f"/some/where cannot be written: {os.strerror(code).lower()}"
    assert remedy in caught.value.hint
    assert caught.value.hint.endswith("; nothing was changed")
