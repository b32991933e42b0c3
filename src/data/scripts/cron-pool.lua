#!lua flags=allow-oom
-- Says workers of which pool make the runs of an organization's cron jobs. Those that wait go there.
--
-- KEYS[1] `pools`, [2] `ready`, [3] `bell`; see `cron-keys.ts`.
-- ARGV[1] organization, [2] mark of the pool (`pool-mark.ts`).
-- Reply: none.
local call = redis.call
local org, mark = ARGV[1], ARGV[2]
local old = call('HGET', KEYS[1], org) or ''
if mark == '' then
  call('HDEL', KEYS[1], org)
else
  call('HSET', KEYS[1], org, mark)
end
-- Releases that know of no pools put every organization where workers of the default one look.
for _, wrong in ipairs({ old, '' }) do
  if wrong ~= mark and call('LREM', KEYS[2] .. wrong, 0, org) > 0 then
    call('RPUSH', KEYS[2] .. mark, org)
    if call('LLEN', KEYS[3] .. mark) < 16 then
      call('RPUSH', KEYS[3] .. mark, 1)
    end
  end
end
if old ~= mark and old ~= '' and call('EXISTS', KEYS[2] .. old) == 0 then
  call('DEL', KEYS[3] .. old)
end
