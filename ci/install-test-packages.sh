#!/bin/sh
# Sees to the system packages that the tests need: installs them as root on Debian or Ubuntu,
# elsewhere names what is missing, one sentence each, and stops.
#   ci/install-test-packages.sh [--bench]    --bench: the benchmarks' peers too
set -eu

# command:Debian's package:what for
wanted='quilt:quilt:the independent applier that the carried series is proved with
patch:patch:what quilt applies patches with
npm:npm:what brings the descriptions that the test forge is checked against
groff:groff-base:the formatter that the man page is read with
zsh:zsh:a shell whose completion is tested
fish:fish:a shell whose completion is tested'
if [ "${1:-}" = --bench ]; then
  wanted="$wanted
stg:stgit:a peer that the benchmarks measure beside patchq"
fi

missing=$(echo "$wanted" | while IFS=: read -r name package purpose; do
  command -v "$name" >/dev/null 2>&1 || echo "$name:$package:$purpose"
done)
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
  packages=$(echo "$missing" | cut -d: -f2)
  echo "Installing system packages: $(echo "$packages" | tr '\n' ' ')"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # One word a package: splitting is meant.
  # shellcheck disable=SC2086
  apt-get install -qq --yes --no-install-recommends -o DPkg::Lock::Timeout=300 $packages \
    </dev/null >/dev/null
  exit 0
fi

echo "$missing" | while IFS=: read -r name package purpose; do
  echo "$name is missing ($purpose): install it (Debian, Ubuntu: apt-get install $package, as root)." >&2
done
exit 1
