#!/bin/sh
# Writes requirements.lock (what patchq runs with) and requirements-test.lock (that and the
# tests), with the hashes of every file of every release, for all of Python 3.11 to 3.13 and all
# systems at once. Versions stay as they are unless `--upgrade` or `--upgrade-package NAME` asks.
set -eu
cd "$(dirname "$0")/.."

uv_release=0.13.9
venv=build/lock-venv
if [ "$("$venv/bin/uv" --version 2>/dev/null | cut -d' ' -f2)" != "$uv_release" ]; then
  rm -rf "$venv"
  "$(ci/find-python.sh)" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$uv_release"
fi

# uv does not read pip's configuration: pass on what pip itself uses, and nothing where it is
# pip's default. No address is written into the locks.
index=${PIP_INDEX_URL:-$("$venv/bin/python" -m pip config get global.index-url 2>/dev/null || true)}
[ -z "$index" ] || export UV_DEFAULT_INDEX="$index"

compile() {
  output=$1
  shift
  "$venv/bin/uv" pip compile --quiet --no-config --universal --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
    --no-annotate --group pyproject.toml:build --output-file "$output" "$@" pyproject.toml
  count=$(grep -c '==' "$output")
  echo "$output: $count packages"
}

# The smaller lock is a part of the larger: the same versions in both.
compile requirements-test.lock --extra test "$@"
compile requirements.lock --constraint requirements-test.lock
