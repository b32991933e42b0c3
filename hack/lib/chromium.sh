# shellcheck shell=bash
# Sourced after toolchain.sh: the browser in which the console is tested.

# Chromium at $chromium: what POSTHORN_CHROMIUM names, or that of the system, which is installed where it is missing.
ensure_chromium() {
  local purpose='to test the console' name
  chromium=${POSTHORN_CHROMIUM:-}
  [ -z "$chromium" ] || return 0
  # Debian packs Chromium without its windows, too: the same pages, which open in a third of the time.
  find_chromium chromium-headless-shell && return
  if [ "$(id -u)" = 0 ] && apt-cache show chromium-headless-shell >/dev/null 2>&1; then
    install_system_package "$purpose" chromium-headless-shell && find_chromium chromium-headless-shell && return
  fi
  find_chromium chromium && return
  find_chromium chromium-browser && return
  for name in chromium-headless-shell chromium; do
    install_system_package "$purpose" "$name" && find_chromium "$name" && return
  done
  die 'needs Chromium to test the console and could not install it: install it, or name one in POSTHORN_CHROMIUM'
}

find_chromium() { chromium=$(command -v "$1"); }
