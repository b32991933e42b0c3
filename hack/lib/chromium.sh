# shellcheck shell=bash
# Sourced after toolchain.sh: the browser in which the console is tested.

# Chromium at $chromium: what POSTHORN_CHROMIUM names, or that of the system, which is installed where it is missing.
ensure_chromium() {
  chromium=${POSTHORN_CHROMIUM:-}
  [ -z "$chromium" ] || return 0
  find_chromium || { install_system_package 'to test the console' chromium && find_chromium; } ||
    die 'needs Chromium to test the console and could not install it: install it, or name one in POSTHORN_CHROMIUM'
}

find_chromium() { chromium=$(command -v chromium || command -v chromium-browser); }
