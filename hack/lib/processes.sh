# shellcheck shell=bash
# Sourced: background processes, each known by its pid file in $state, with its log beside it.

if [ "$(id -u)" = 0 ] && [ -d /run ]; then state=/run/posthorn-cluster; else state=${TMPDIR:-/tmp}/posthorn-cluster-$(id -u); fi
state=${CLUSTER_DIR:-$state}

# A free port that no suite and no other script gets while this one runs, outside the range from which the system takes ports.
free_port() {
  # shellcheck disable=SC2016 # Node expands it
  node --input-type=module -e 'const { freePort } = await import(process.argv[1]); console.log(await freePort(Number(process.argv[2])))' "$root/test/support/ports.ts" $$
}

# One command at a time changes the cluster; the others wait for it.
take_turns() {
  command -v flock >/dev/null || return 0
  exec 9>"$state.lock"
  flock --timeout 1800 9 || die "another $0 has been at work for half an hour"
}

# start NAME COMMAND…. The process holds the lock of this shell until its number is written: were this shell killed before, the next caller would
# miss it.
start() {
  local name=$1
  shift
  rm -f "$state/$name.pid"
  # shellcheck disable=SC2016 # the new shell expands it
  setsid nohup "$BASH" -c 'echo $$ >"$0" && exec "$@" 9>&-' "$state/$name.pid" "$@" >"$state/$name.log" 2>&1 </dev/null &
  for _ in $(seq 3000); do
    [ ! -s "$state/$name.pid" ] || return 0
    sleep 0.02
  done
  die "$name does not start: see $state/$name.log"
}

# command_line PID. While a process goes over to another program it is empty for a moment; that of one that has ended stays empty until it is reaped.
command_line() {
  local line=''
  if [ ! -d /proc/self ]; then
    ps -o args= -p "$1" 2>/dev/null
    return
  fi
  for _ in $(seq 100); do
    line=$(tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline") || return 1
    [ -z "$line" ] && grep -q '^State:.[^ZX]' "/proc/$1/status" || break
    sleep 0.02
  done 2>/dev/null
  echo "$line"
}

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
await() { is_up "$@" || die "$complaint"; }

# is_up NAME SECONDS COMMAND…: as `await`, but false instead of the end, with what is wrong as $complaint.
is_up() {
  local name=$1 deadline=$((SECONDS + $2)) answers
  shift 2
  while :; do
    answers=yes
    "$@" >/dev/null 2>&1 || answers=
    complaint="$name stopped: $(tail -n 1 "$state/$name.log" 2>/dev/null)"
    alive "$name" || return 1
    [ -z "$answers" ] || return 0
    complaint="$name is not ready after its time: see $state/$name.log"
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.2
  done
}

# start_on_free_port NAME SECONDS STARTER COMMAND…: calls STARTER, which starts the process NAME on $port, and waits as `await` does. When the
# process ends because somebody has taken the port before it could, all this again with another port.
start_on_free_port() {
  local name=$1 seconds=$2 starter=$3
  shift 3
  for _ in 1 2 3 4 5; do
    port=$(free_port)
    "$starter"
    if is_up "$name" "$seconds" "$@"; then return; fi
    if alive "$name" || ! grep -qi 'address already in use' "$state/$name.log"; then break; fi
  done
  die "$complaint"
}
