#!/usr/bin/env bash
# Prints the home folder of a Java 17 or newer: JAVA_HOME's, PATH's, another installed one, or one that apt installs now.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# home_of JAVA: its home folder, if it is 17 or newer.
home_of() {
    local settings version
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = //p' <<<"$settings")
    version=${version#1.} # Java 8 calls itself 1.8
    [ "${version:-0}" -ge 17 ] || return 1
    sed -n 's/^ *java\.home = //p' <<<"$settings"
}

find_java() {
    local java
    for java in "${JAVA_HOME:-}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [ -x "$java" ] && home_of "$java"; then return; fi
    done
    return 1
}

# The newest JRE that apt offers, but 17 first: that is the one this project is tested with.
pick_package() {
    local offered
    offered=$(apt-cache search --names-only '^openjdk-[0-9]+-jre-headless$' | cut -d' ' -f1 | sort -V)
    grep -x openjdk-17-jre-headless <<<"$offered" || tail -n 1 <<<"$offered"
}

if ! home=$(find_java) && may_apt; then
    apt_update
    package=$(pick_package)
    if [ -n "$package" ]; then apt_install "$package" || true; fi
    home=$(find_java) || true
fi
[ -n "$home" ] || fail "Spark needs Java 17 or newer, and neither JAVA_HOME nor PATH nor /usr/lib/jvm has one:" \
    "install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME, then run make again."
echo "$home"
