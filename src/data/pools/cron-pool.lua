#!lua flags=allow-oom
-- Stores the pool whose workers make the runs of an organization's cron jobs, and moves the runs that wait there.
--
-- KEYS[1] `pools`, [2] `ready`, [3] `bell`; see `cron-keys.ts`.
-- ARGV[1] organization, [2] mark of the pool (`pool-suffix.ts`).
-- Reply: none.
-- @include "includes/pool-note.lua"

move(org)
if old ~= mark and old ~= '' and call('EXISTS', KEYS[2] .. old) == 0 then
  call('DEL', KEYS[3] .. old)
end
