#!/bin/sh
# Installs the release that this file belongs to: verifies it, makes patchq a private environment,
# and hands over to `patchq install`.
#
#   sh install.sh [--from DIR|URL] [--packages DIR] [OPTIONS of patchq install]
#
# Without --from the release lies beside this file. It needs sh, ssh-keygen, sha256sum, Python 3.11
# or newer with venv, and curl for an address; nothing is run before the signature holds. All that
# it writes is in one folder: $PATCHQ_HOME, else ~/.local/share/patchq. docs/install.md says more.

# Whose signatures are taken: ssh-keygen(1), ALLOWED SIGNERS.
signers() {
  cat <<'PATCHQ_SIGNERS'
@ALLOWED_SIGNERS@
PATCHQ_SIGNERS
}

fail() {
  printf 'install.sh: %s\n            %s\n' "$1" "$2" >&2
  exit "${3:-1}"
}

# get NAME: a file of the release, into $new.
get() {
  case $from in
  http://* | https://*)
    curl --fail --silent --show-error --location --retry 3 --retry-connrefused \
      --output "$new/$1" -- "$from/$1" ||
      fail "$1 was not downloaded from $from" "check the address and the network, and run it again" 6
    ;;
  *)
    cp -- "$from/$1" "$new/$1" ||
      fail "$from holds no release: $1 is missing" "name the folder or address with --from"
    ;;
  esac
}

python_there() {
  for python in python3 python3.13 python3.12 python3.11; do
    if command -v "$python" >/dev/null 2>&1 &&
      "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      return 0
    fi
  done
  fail "there is no Python 3.11 or newer here" "install it (Debian, Ubuntu: apt-get install python3-venv)"
}

# Prints where the release is that the arguments name.
place() {
  case $1 in
  http://* | https://*) printf '%s\n' "${1%/}" ;;
  *) (CDPATH='' cd -- "$1" 2>/dev/null && pwd) || fail "$1 is no folder" "name the folder of the release" ;;
  esac
}

verify() {
  signers >"$new/allowed_signers"
  get SHA256SUMS
  get SHA256SUMS.sig
  who=$(ssh-keygen -Y find-principals -s "$new/SHA256SUMS.sig" -f "$new/allowed_signers" 2>/dev/null |
    sed 's/,.*//;q')
  if [ -z "$who" ] || ! ssh-keygen -Y verify -n patchq-release -I "$who" -f "$new/allowed_signers" \
    -s "$new/SHA256SUMS.sig" <"$new/SHA256SUMS" >/dev/null 2>&1; then
    fail "the signature of the release does not hold" \
      "do not use it; get release and install.sh afresh, from where it is published" 5
  fi
  wheel=$(sed -n 's/^[0-9a-f]\{64\}  \(patchq-[0-9A-Za-z.+_]*-py3-none-any\.whl\)$/\1/p' "$new/SHA256SUMS")
  case $wheel in
  patchq-*[!0-9A-Za-z.+_-]* | '') fail "the release has no patchq, or several" "get it afresh" ;;
  esac
  get release.toml
  get "$wheel"
  needed="release.toml $wheel"
  lock=requirements.patchq.lock
  if grep -q "^[0-9a-f]\{64\}  $lock\$" "$new/SHA256SUMS"; then
    get "$lock"
    needed="$needed $lock"
  fi
  for name in $needed; do
    awk -v name="$name" '$2 == name' "$new/SHA256SUMS"
  done >"$new/needed"
  (cd "$new" && sha256sum --check --strict --quiet needed >/dev/null 2>&1) ||
    fail "the release is not what was signed: its patchq has other bytes" "get it afresh" 5
}

# A private environment, once for each patchq; `made` in it is written last.
environment() {
  tool=$home/tools/$(grep -v '  release\.toml$' "$new/needed" | sha256sum | cut -c1-16)
  if [ ! -e "$tool/made" ]; then
    rm -rf -- "$tool"
    "$python" -m venv "$tool" >/dev/null ||
      fail "Python's venv does not work" "install it (Debian, Ubuntu: apt-get install python3-venv)"
    set -- --disable-pip-version-check --no-input --quiet
    if [ -n "$packages" ]; then
      set -- "$@" --no-index --find-links "$packages"
    fi
    if [ -e "$new/$lock" ]; then
      "$tool/bin/python" -m pip install "$@" --no-deps --require-hashes --only-binary :all: \
        --requirement "$new/$lock" &&
        "$tool/bin/python" -m pip install "$@" --no-deps --no-index "$new/$wheel"
    else
      "$tool/bin/python" -m pip install "$@" "$new/$wheel"
    fi || fail "patchq's own packages were not installed" "see what pip says above, then run it again" 6
    cp -- "$new/allowed_signers" "$tool/allowed_signers"
    : >"$tool/made"
  fi
}

main() {
  set -eu
  umask 022
  from='' packages=''
  count=$#
  while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    case $argument in
    --from | --packages)
      [ "$count" -gt 0 ] || fail "$argument of what?" "write it behind" 2
      if [ "$argument" = --from ]; then from=$1; else packages=$(place "$1"); fi
      shift
      count=$((count - 1))
      ;;
    *) set -- "$@" "$argument" ;;
    esac
  done
  if [ -z "$from" ]; then
    from=$(dirname -- "$0")
    [ -e "$from/SHA256SUMS" ] ||
      fail "there is no release beside this file" "name its folder or address with --from"
  fi
  from=$(place "$from")
  for program in ssh-keygen sha256sum awk sed; do
    command -v "$program" >/dev/null 2>&1 ||
      fail "$program is missing" "install it (Debian, Ubuntu: openssh-client, coreutils, gawk, sed)"
  done
  case $from in
  http*) command -v curl >/dev/null 2>&1 || fail "curl is missing" "install it, or download the release" ;;
  esac
  python_there
  home=${PATCHQ_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/patchq}
  mkdir -p -- "$home"
  new=$(mktemp -d -- "$home/new.XXXXXX")
  trap 'rm -rf -- "$new"' EXIT
  trap 'exit 130' INT TERM HUP
  verify
  environment
  number=$(sed -n 's/^number = \([0-9][0-9]*\)$/\1/p' "$new/release.toml" | sed q)
  rm -rf -- "$new"
  trap - EXIT
  set -- "$@" --signers "$tool/allowed_signers"
  if [ -n "$packages" ]; then
    set -- "$@" --packages "$packages"
  fi
  # A release among others: the next ones are found by their numbers in the same place.
  case $from in
  */release-"$number" | */"$number") set -- "$number" --from "${from%/*}" "$@" ;;
  *) set -- "$from" "$@" ;;
  esac
  exec "$tool/bin/patchq" install "$@"
}

main "$@"
