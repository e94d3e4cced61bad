#!/bin/sh
# Prints the interpreter to make the virtual environment with: $PYTHON where it is set, else
# the first of python3, python3.13, python3.12, python3.11 that is 3.11 or newer. One sentence and
# status 1 where there is none, or where it cannot make a virtual environment.
set -eu

fit='import sys; sys.exit(sys.version_info < (3, 11))'

# A name on PATH is not enough: a version manager's stub answers for versions it does not have.
if [ -n "${PYTHON:-}" ]; then
  if ! "$PYTHON" -c "$fit" >/dev/null 2>&1; then
    echo "PYTHON=$PYTHON does not run Python 3.11 or newer: name one that does, or leave PYTHON unset." >&2
    exit 1
  fi
  found=$PYTHON
else
  found=
  for name in python3 python3.13 python3.12 python3.11; do
    if "$name" -c "$fit" >/dev/null 2>&1; then
      found=$name
      break
    fi
  done
  if [ -z "$found" ]; then
    echo "Python 3.11 or newer is missing: install it (Debian, Ubuntu: apt-get install python3 python3-venv), or name one with PYTHON=/path/to/python3." >&2
    exit 1
  fi
fi

if ! "$found" -c 'import ensurepip, venv' >/dev/null 2>&1; then
  version=$("$found" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  echo "$found cannot make virtual environments, its venv module is missing: install it (Debian, Ubuntu: apt-get install python$version-venv)." >&2
  exit 1
fi
echo "$found"
