"""Signatures by the real ssh-keygen, and every reason why one does not count."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchq.errors import PatchqError
from patchq.release import sign


def made(folder: Path, name: str = "key", phrase: str = "") -> Path:
    path = folder / name
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def signers(folder: Path, key: Path, who: str = "me@here", options: str = "") -> Path:
    path = folder / "allowed_signers"
    public = key.with_suffix(".pub").read_text().strip()
    path.write_text(f"# a comment\n\n{who} {options} {public}\n")
    return path


def test_it_holds_for_these_bytes_and_no_others(tmp_path: Path) -> None:
    key = made(tmp_path)
    file = tmp_path / "SHA256SUMS"
    file.write_bytes(b"sums\n")
    signature = sign.sign(file, str(key))
    assert signature == tmp_path / "SHA256SUMS.sig"
    known = signers(tmp_path, key)
    assert sign.signer(b"sums\n", signature, known) == ("me@here", "")
    assert sign.signer(b"sum\n", signature, known) == (None, "it is not over these sums")
    other = signers(tmp_path, made(tmp_path, "other"))
    assert sign.signer(b"sums\n", signature, other)[0] is None
    assert "nobody's key" in sign.signer(b"sums\n", signature, tmp_path / "none")[1]


@pytest.mark.parametrize(
    ("who", "counts"), [("me@here,you@here", True), ("*@here", False), ("-f", True), ("'x'", True)]
)
def test_names_of_signers_are_names(tmp_path: Path, who: str, counts: bool) -> None:
    """A pattern names nobody; what looks like an option is none."""
    key = made(tmp_path)
    file = tmp_path / "SHA256SUMS"
    file.write_bytes(b"sums\n")
    signature = sign.sign(file, str(key))
    found, why = sign.signer(b"sums\n", signature, signers(tmp_path, key, who))
    assert (found is not None) is counts, why


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"-----BEGIN SSH SIGNATURE-----\nAAAA\n"])
def test_what_is_no_signature(tmp_path: Path, data: bytes) -> None:
    signature = tmp_path / "s"
    signature.write_bytes(data)
    who, why = sign.signer(b"sums\n", signature, signers(tmp_path, made(tmp_path)))
    assert who is None and why


def test_a_key_with_a_passphrase_needs_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing asks at the terminal: that would hang where there is nobody."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    file = tmp_path / "SHA256SUMS"
    file.write_bytes(b"sums\n")
    with pytest.raises(PatchqError, match="does not sign with") as caught:
        sign.sign(file, str(made(tmp_path, phrase="secret words")))
    assert "ssh-add" in caught.value.hint
    assert not (tmp_path / "SHA256SUMS.sig").exists()


def test_without_ssh_keygen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = made(tmp_path)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(PatchqError, match="ssh-keygen is not installed"):
        sign.sign(tmp_path / "x", str(key))
