# shellcheck shell=bash
# Sourced: background processes, each known by its pid file in $state, with its log beside it.

if [ "$(id -u)" = 0 ] && [ -d /run ]; then state=/run/posthorn-cluster; else state=${TMPDIR:-/tmp}/posthorn-cluster-$(id -u); fi
state=${CLUSTER_DIR:-$state}

free_port() { node -e 'const s=require("node:net").createServer();s.listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})'; }

# One command at a time changes the cluster; the others wait for it.
take_turns() {
  command -v flock >/dev/null || return 0
  exec 9>"$state.lock"
  flock --timeout 1800 9 || die "another $0 has been at work for half an hour"
}

# start NAME COMMAND…. The process holds the lock of this shell until its number is written: were this shell killed before, whoever comes next would
# not know of it.
start() {
  local name=$1
  shift
  rm -f "$state/$name.pid"
  # shellcheck disable=SC2016 # the new shell expands it
  setsid nohup "$BASH" -c 'echo $$ >"$0" && exec "$@" 9>&-' "$state/$name.pid" "$@" >"$state/$name.log" 2>&1 </dev/null &
  for _ in $(seq 500); do
    [ ! -s "$state/$name.pid" ] || return 0
    sleep 0.02
  done
}

command_line() { if [ -d /proc/self ]; then tr '\0' ' ' <"/proc/$1/cmdline"; else ps -o args= -p "$1"; fi 2>/dev/null; }

# alive NAME: its process runs, and is not another that got the same number since. Each has a file of $state among its arguments.
alive() {
  local pid line
  pid=$(cat "$state/$1.pid" 2>/dev/null) && line=$(command_line "$pid") && [[ $line == *"$1"* && $line == *"$state/"* ]]
}

stop() {
  local pid
  if alive "$1"; then
    pid=$(cat "$state/$1.pid")
    kill -TERM "$pid" 2>/dev/null || true
    for _ in $(seq 50); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
  fi
  rm -f "$state/$1.pid"
}

# await NAME SECONDS COMMAND…: until the command succeeds; gives up when the process NAME ends or the time is over.
await() {
  local name=$1 deadline=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    alive "$name" || die "$name stopped: $(tail -n 1 "$state/$name.log")"
    [ "$SECONDS" -lt "$deadline" ] || die "$name is not ready after its time: see $state/$name.log"
    sleep 0.2
  done
}
