# shellcheck shell=bash
# Sourced: commands that run beside others, and whatever they start with them.

# begin COMMAND…: in a process group of its own; `begun` is its number, for `wait`.
begin() {
  set -m
  "$@" </dev/null &
  begun=$!
  set +m
}

# run COMMAND…: waits for it. Unlike for a command in the foreground, a signal that comes meanwhile is obeyed at once.
run() {
  begin "$@"
  wait "$begun"
}

# Ends what has begun and has not ended, and returns when nothing of it is left; or when what was killed has had its time: where nobody
# reaps them, dead processes stay.
end_begun() {
  local job deadline=$((SECONDS + 40)) signal=TERM
  local last=$((deadline + 10))
  local -a groups=()
  for job in $(jobs -p); do groups+=("-$job"); done
  while [ ${#groups[@]} -gt 0 ] && [ "$SECONDS" -lt "$last" ] && kill -"$signal" -- "${groups[@]}" 2>/dev/null; do
    # Standalone gives what is under way half a minute.
    if [ "$SECONDS" -lt "$deadline" ]; then signal=0; else signal=KILL; fi
    sleep 0.1
  done
}
