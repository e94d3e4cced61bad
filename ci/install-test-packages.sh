#!/bin/sh
# Sees to the system packages that the tests need: installs them as root on Debian or Ubuntu,
# elsewhere names what is missing, one sentence each, and stops.
#   ci/install-test-packages.sh [--bench]    --bench: the benchmarks' peers too
set -eu

# Servers stand where users' PATH does not look.
PATH=$PATH${SBIN-:/usr/sbin}

# command:Debian's package:what for
wanted='quilt:quilt:the independent applier that the carried series is proved with
patch:patch:what quilt applies patches with
npm:npm:what brings the descriptions that the test forge is checked against
groff:groff-base:the formatter that the man page is read with
zsh:zsh:a shell whose completion is tested
fish:fish:a shell whose completion is tested
ssh:openssh-client:what reaches the nodes of a cluster
sshd:openssh-server:the ssh server that tests reach as a node
rsync:rsync:what copies files to the nodes of a cluster
ip:iproute2:what makes two nodes of one machine
curl:curl:what install.sh downloads with
systemd-analyze:systemd:what reads the systemd unit that an install writes'
# Elsewhere it comes otherwise than from apt, and the tests that look at pages are skipped without.
# shellcheck source=/dev/null
system=$(. "${OS_RELEASE-/etc/os-release}" 2>/dev/null && echo "${ID-}") || system=
if [ "$system" = debian ]; then
  wanted="$wanted
chromium:chromium:the browser that reports are looked at in"
fi
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
