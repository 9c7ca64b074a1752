# Sourced by the set-up scripts: how they speak, stop, and ask apt.
# shellcheck shell=bash

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# True where apt-get can be used without asking anyone: root on Debian or Ubuntu.
may_apt() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

apt_update() {
    say "refreshing apt's package lists"
    apt-get update -qq >/dev/null 2>&1 || say "apt-get update failed; going on with the lists that are there"
}

apt_install() {
    say "installing $1 with apt"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null </dev/null
}
