#!/bin/sh
# Makes .venv hold exactly what a lock says, and this repository in editable mode.
#   ci/venv.sh requirements.lock | requirements-test.lock
# Does nothing where that was done before and nothing has changed since.
set -eu
cd "$(dirname "$0")/.."

lock=$1
venv=.venv
stamp=$venv/.made-from-$lock

need_git() {
  text=$(git --version 2>/dev/null) || {
    echo "git is missing: install git 2.39 or newer (Debian, Ubuntu: apt-get install git)." >&2
    exit 1
  }
  version=$(echo "$text" | sed -n 's/^git version \([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p')
  major=${version% *}
  minor=${version#* }
  if [ "${major:-0}" -lt 2 ] || { [ "$major" -eq 2 ] && [ "$minor" -lt 39 ]; }; then
    echo "git is too old (${text#git version }): patchq needs 2.39 or newer for three-way merges of trees, so update git." >&2
    exit 1
  fi
}

need_git
# Only asked for where it is needed: a virtual environment that stands needs no other Python.
if [ -n "${PYTHON:-}" ] || [ ! -x $venv/bin/python ]; then
  python=$(ci/find-python.sh)
else
  python=$venv/bin/python
fi

version() {
  "$1" -c 'import sys; print(sys.version)' 2>/dev/null
}
# The version, for a PYTHON that names another; the folder, for a clone that was moved or copied
# (the scripts in .venv/bin name it); the contents of what decides.
describe() {
  version "$1" && pwd -P && cksum "$lock" pyproject.toml
}
wanted=$(describe "$python" || true)
if [ -n "$wanted" ] && [ -f "$stamp" ] && [ "$wanted" = "$(cat "$stamp")" ] &&
  [ "$wanted" = "$(describe $venv/bin/python)" ]; then
  exit 0
fi

usable() {
  [ "$(cat $venv/.made-in 2>/dev/null)" = "$(pwd -P)" ] && version $venv/bin/python >/dev/null &&
    [ "$(version "$python")" = "$(version $venv/bin/python)" ]
}
if ! usable; then
  if [ -e $venv ] && [ ! -f $venv/.made-in ]; then
    echo "$venv is there and was not made by this Makefile: rename or remove it, then run this again." >&2
    exit 1
  fi
  python=$(ci/find-python.sh)
  echo "Making the virtual environment $venv with $("$python" --version)."
  rm -rf $venv
  mkdir $venv
  echo unfinished >$venv/.made-in
  "$python" -m venv $venv
  pwd -P >$venv/.made-in
fi
rm -f "$stamp"

pip() {
  $venv/bin/python -m pip --disable-pip-version-check "$@"
}
echo "Installing what $lock lists."
if ! pip install -qq --no-user --require-hashes --requirement "$lock"; then
  echo "The packages of $lock could not be installed: pip says above why; where it could not reach the package index, set pip's index or proxy and run this again." >&2
  exit 1
fi
pip install -qq --no-user --no-deps --no-build-isolation --editable .
describe $venv/bin/python >"$stamp"
