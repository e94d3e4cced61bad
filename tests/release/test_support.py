"""What is sent to a maintainer helps, and tells nobody who and where; shown before it is written."""

from __future__ import annotations

import stat
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.release.redact import Cleaner
from tests.support.inside import call
from tests.support.press import Press

SAID = """\
Authorization: Bearer abcdef0123456789abcdef
HF_TOKEN=hf_abcdefghijklmnopqrstuvwx and ghp_0123456789abcdefghijABCDEFGHIJ012345
vllm serve --api-key s3cr3t-of-mine --max-tokens 12
{"password": "hunter22", "max_tokens": 7}
https://ada:geheim@mirror.example/simple
rank 1 at 192.168.100.11 and fe80::1a2b:3cff:fe4d:5e6f, then 192.168.100.11:8000 again
GID ::ffff:192.168.100.11 of enp1s0f0np0, adapter 0c:42:a1:b2:c3:d4, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6
by ada@spark-a.lan at 21:14:46 in /home/ada/models and /Users/ada/x
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ
-----END OPENSSH PRIVATE KEY-----
"""
SECRET = (
    *("abcdef0123456789", "hf_abcdef", "ghp_0123", "s3cr3t", "hunter22", "geheim", "192.168"),
    *("1a2b", "0c:42", "8932f937", "ada@", "/ada/", "spark-a", "b3Blbn"),
)


def test_names_addresses_and_tokens_are_taken_out() -> None:
    cleaner = Cleaner({"ada": "user", "spark-a": "node-0", "spark-a.lan": "node-0"})
    said = cleaner.clean(SAID)
    assert [each for each in SECRET if each in said] == [], said
    assert "rank 1 at address-1 and address-2, then address-1:8000 again" in said
    assert cleaner.removed["tokens"] >= 7 and cleaner.removed["addresses"] == 5


def test_what_helps_stays() -> None:
    kept = """\
vllm:generation_tokens_total{engine="0"} 30.0, max_tokens 4096, started 2026-11-30 21:14:46 UTC
serves at http://127.0.0.1:8888, listens on 0.0.0.0 and [::]:8888, torch.ops._C::rms_norm
NCCL WARN ibv_modify_qp failed with error No data available errno 61
tokenizer_config.json, token budget: see docs; sha256 0123456789abcdef0123456789abcdef
"""
    assert Cleaner({"ada": "user"}).clean(kept) == kept


@given(
    st.text(max_size=40),
    st.sampled_from(["10.1.2.3", "hf_0123456789abcdefgh", "bob@example.org", "desk-7"]),
    st.sampled_from([" ", "\n", "'", '"', "(", ",", "="]),
)
def test_whatever_stands_around_it(text: str, secret: str, edge: str) -> None:
    said = Cleaner({"desk-7": "this-host"}).clean(f"{text}{edge}{secret}{edge}{text}")
    assert secret not in said or secret in text


def test_long_lines_take_no_time() -> None:
    """Of the kinds on which an expression that goes back would not end."""
    begun = time.process_time()
    for line in ("a" * 100_000, ":" * 100_000, "1." * 50_000, "hf_" * 30_000, "token " * 20_000):
        Cleaner({"desk": "host"}).clean(line)
    assert time.process_time() - begun < 20


def test_it_is_shown_and_then_written(sealed: Path, tmp_path: Path) -> None:
    press = Press(tmp_path / "press")
    press.cut(1)
    (sealed / "models/tiny").mkdir(parents=True)
    given = ("--cluster", str(press.cluster()), "--signers", str(press.signers))
    call(sealed, "install", str(press.place(1)), *given)
    (sealed / "patchq/logs/20260101T000000Z").mkdir(parents=True)
    log = sealed / "patchq/logs/20260101T000000Z/rank-0.log"
    log.write_text("listening for 10.9.8.7\nHF_TOKEN=hf_abcdefghijklmnop\n")
    said = call(sealed, "support")
    assert "listening for address-1" in said.out and '"number": "1"' in said.out
    assert "nothing was written" in said.err
    assert list(sealed.glob("*.tar.gz")) == []
    out = tmp_path / "trouble.tar.gz"
    found = call(sealed, "support", "--out", str(out), "--yes", "--json").json
    assert found["file"] == str(out) and found["removed"]["tokens"] == 1
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with tarfile.open(out) as packed:
        files = {Path(each.name).name: packed.extractfile(each) for each in packed}
        texts = {name: file.read().decode() for name, file in files.items() if file}
    assert texts == {each["name"]: each["text"] for each in found["files"]}
    assert set(texts) == {
        *("versions.txt", "cluster.toml", "doctor.txt", "node-0.json", "rank-0.log")
    }
    assert str(sealed.name) not in "".join(texts.values())
    said = call(sealed, "support", "--out", str(out), "--yes", code=1)
    assert "is there already" in said.err


def test_nothing_is_installed(sealed: Path) -> None:
    assert "no release is installed here" in call(sealed, "support", code=1).err


@pytest.mark.parametrize("command", ["rollback", "uninstall"])
def test_nothing_to_go_back_from(sealed: Path, command: str) -> None:
    said = call(sealed, command, code=1)
    assert "is installed here" in said.err and "patchq install N" in said.err
