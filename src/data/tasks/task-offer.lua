-- Queues a task for the workers of its organization's pool, unless there are too many.
--
-- KEYS[1] `q`, [2] `bell`, [3] `t:<task>`, [4] `o:<org>`, [5] `pools`, [6] `t:`, what the keys of tasks begin with; see `task-kind.ts`.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): id; task (JSON); timeout_ms to its deadline; max_waiting there; max_of_organization: most open
-- ones; org; credential.
-- Reply: `queued` (also when it was before), `full` (no place is left for this organization), `busy` (too many of this organization) or `reserved` (what is
-- left to the organization is for its other credentials).
-- @include "includes/bounded-bell.lua"
-- @include "../../redis/scripts/includes/json.lua"
local call = redis.call
local offer = decoded(ARGV[1])
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if call('EXISTS', KEYS[3]) == 1 then
  return 'queued'
end
call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
-- Returns whether one that holds `held` gets one more: of the last quarter only while it holds fewer than are free, as in `OpenShares` (open-shares.ts).
local function is_left(all, free, held)
  return free > 0 and (free > all / 4 or held < free)
end
-- A task begins with its kind, its organization and its credential; see `task-caller.ts`.
local function credential_of(id)
  return string.match(call('GETRANGE', KEYS[6] .. id, 0, 511), '^{"kind":"[^"]*","org":"[^"]*","credential":"([^"]*)"')
end
local open = call('ZRANGE', KEYS[4], 0, -1)
local own, of_credential = #open, 0
for _, id in ipairs(open) do
  if credential_of(id) == offer.credential then
    of_credential = of_credential + 1
  end
end
if own >= offer.max_of_organization then
  return 'busy'
elseif not is_left(offer.max_of_organization, offer.max_of_organization - own, of_credential) then
  return 'reserved'
end
local mark = call('HGET', KEYS[5], offer.org) or ''
local queue, bell = KEYS[1] .. mark, KEYS[2] .. mark
if not is_left(offer.max_waiting, offer.max_waiting - call('LLEN', queue), own) then
  return 'full'
end
call('SET', KEYS[3], offer.task, 'PX', offer.timeout_ms)
call('ZADD', KEYS[4], now + offer.timeout_ms, offer.id)
if call('PTTL', KEYS[4]) < offer.timeout_ms then
  call('PEXPIRE', KEYS[4], offer.timeout_ms)
end
call('RPUSH', queue, offer.id)
ring(bell)
return 'queued'
