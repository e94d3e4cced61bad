"""What runs on nodes, by itself: it fits their Pythons, and reads what servers say."""

from __future__ import annotations

import ast
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.cluster import there
from patchq.cluster.there import files, net, procs, ranks
from tests.support.sshd import deaf

MODULES = sorted(Path(there.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_nodes_python_may_be_old(path: Path) -> None:
    """3.8 reads it, and it imports the standard library and its neighbours alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {each.module or "" for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    assert all(
        not name.startswith("patchq") or name.startswith("patchq.cluster.there")
        for name in imported
    )
    calls = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    assert calls.isdisjoint({"removeprefix", "removesuffix", "is_relative_to"})


@contextmanager
def serving(pages: dict[str, tuple[int, bytes]]) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = pages.get(self.path, (404, b""))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return None

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


METRICS = b"""# HELP vllm:num_requests_running Number of requests.
vllm:num_requests_running{engine="0",model_name="a b"} 1.0
vllm:num_requests_running{engine="1",model_name="a b"} 2.0
vllm:generation_tokens_total{engine="0"} 1.5e+03
vllm:generation_tokens_created{engine="0"} 1.7e+09
"""


def test_progress_of_the_series_and_of_any_vllm() -> None:
    stalled = json.dumps({"status": "stalled", "running_requests": 1}).encode()
    with serving({"/health": (200, b""), "/progress": (503, stalled)}) as port:
        found = net.health("127.0.0.1", port)
        assert found["health"] == 200 and found["progress"]["status"] == "stalled"
    with serving({"/health": (200, b""), "/metrics": (200, METRICS)}) as port:
        found = net.health("127.0.0.1", port)
        assert found["progress"] == {"running_requests": 3, "generation_tokens": 1500}
    with serving({"/health": (200, b"")}) as port:
        assert net.health("127.0.0.1", port) == {"health": 200, "progress": None}
    with serving({"/health": (503, b"")}) as port:
        assert net.health("127.0.0.1", port) == {"health": 503, "progress": None}


def test_a_server_that_takes_the_connection_and_says_nothing() -> None:
    with deaf() as port:
        assert net.health("127.0.0.1", port, 0.2) == {"health": None, "progress": None}
    assert net.health("127.0.0.1", port, 0.2)["health"] is None


@given(st.text())
def test_any_metrics_are_counted_or_not(text: str) -> None:
    found = net.counted(text)
    assert found is None or set(found) <= set(net.SUMS)


def test_a_number_that_went_to_another_process_is_not_the_rank() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as sleeper:
        mine = procs.identity(sleeper.pid)
        assert list(procs.family(mine)) == [sleeper.pid]
        assert procs.family({**mine, "began": mine["began"] - 1}) == {}
        assert procs.family({**mine, "boot": "another"}) == {}
        sleeper.kill()


def test_a_rank_that_ended_just_now(tmp_path: Path) -> None:
    """Its guard is a moment behind with noting how: it is not just "gone"."""
    folder, log = str(tmp_path), tmp_path / "log"
    log.write_text("boom\n")
    (tmp_path / "run").mkdir()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as guard:
        said = {"rank": 0, "pid": -2, "ended": None, "log": str(log), "port": 0}
        said["guard"] = procs.identity(guard.pid)
        ranks.write(folder, said)
        ended = {**said, "ended": {"code": 137, "when": 1.0}}
        late = threading.Timer(0.2, ranks.write, (folder, ended))
        late.start()
        found = ranks.look({"folder": folder, "rank": 0, "lines": 1})
        late.join()
        guard.kill()
    assert (found["alive"], found["rank"]["ended"]["code"]) == (False, 137)


def test_starts_are_counted_until_the_next_deployment(tmp_path: Path) -> None:
    folder = str(tmp_path)
    (tmp_path / "run").mkdir()
    for _ in range(2):
        ranks.count(folder, 0)
    assert (ranks.starts(folder, 0), ranks.starts(folder, 1)) == (2, 0)
    for digest in ("a", "b"):
        files.switch({"folder": folder, "digest": digest})
        assert ranks.starts(folder, 0) == 0
        ranks.count(folder, 0)
    assert (files.linked(folder, "current"), files.linked(folder, "previous")) == ("b", "a")
    files.switch({"folder": folder, "digest": "b"})
    assert ranks.starts(folder, 0) == 1, "the same again is no deployment"


def test_what_is_damaged_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/rank-0.json").write_bytes(b"\0{")
    assert ranks.record(str(tmp_path), 0) is None
    files.link(str(tmp_path), "current", "x")
    assert files.installed({"folder": str(tmp_path)}) == {"current": None, "previous": None}


def test_old_runs_are_removed(tmp_path: Path) -> None:
    for number in range(ranks.KEPT + 3):
        (tmp_path / f"{number:02}").mkdir()
    ranks.prune(str(tmp_path))
    assert sorted(each.name for each in tmp_path.iterdir())[0] == "03"


def test_a_semaphore_is_found_by_its_inode_and_removed() -> None:
    """Python's have a name until their process ends well; this one does not."""
    program = "import multiprocessing; it = multiprocessing.get_context('spawn').Semaphore()"
    program += "; print(it._semlock.name, flush=True); input()"
    command = [sys.executable, "-c", program]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing) as process:
        assert process.stdout is not None
        name = process.stdout.readline().decode().strip()
        path = Path("/dev/shm") / f"sem.{name.removeprefix('/')}"
        assert path.exists()
        assert procs.shared([process.pid]) == {str(path)}
        procs.unlink([str(path)])
        assert path.exists(), "it is in use"
        process.kill()
    procs.unlink([str(path)])
    assert not path.exists()
