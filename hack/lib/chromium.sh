# shellcheck shell=bash
# Sourced after toolchain.sh: the browser in which the console is tested.

# Chromium at $chromium: what POSTHORN_CHROMIUM names, or that of the system, which is installed where it is missing.
ensure_chromium() {
  chromium=${POSTHORN_CHROMIUM:-}
  [ -z "$chromium" ] || return 0
  # Debian packs Chromium without its windows, too: the same pages, which open in a third of the time. An installed Chromium is reason enough not to ask for a password.
  find_chromium chromium-headless-shell ||
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && install_system_package 'to test the console' chromium-headless-shell && find_chromium chromium-headless-shell; } ||
    find_chromium chromium || find_chromium chromium-browser ||
    { install_system_package 'to test the console' chromium && find_chromium chromium; } ||
    die 'needs Chromium to test the console and could not install it: install it, or name one in POSTHORN_CHROMIUM'
}

find_chromium() { chromium=$(command -v "$1"); }
