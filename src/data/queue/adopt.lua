#!lua flags=allow-oom
-- Returns the leases of a worker that the worker does not list: the reply of dequeue was lost.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] worker, [2] hold time in ms; then the handles `<lane>/<entry>` that it lists.
-- Reply: {targets, jobs, texts} (includes/jobs.lua).
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "includes/jobs.lua"

local worker = ARGV[1]
local known = {}
for k = 3, #ARGV do
  known[ARGV[k]] = true
end
local held = call('HGETALL', P .. 'held:' .. worker)
for k = 1, #held, 2 do
  local handle, id = held[k], held[k + 1]
  if not known[handle] then
    local lane, entry = string.match(handle, '^(%d+r?)/(.+)$')
    local n = number_of_lane(lane)
    local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.route, F.target.destination, F.target.revision,
      F.target.circuit_generation)
    if t[1] and add_job(lane, entry, id) then
      job_target(n, t[1], t[2], t[3], t[4], t[5])
      call('ZADD', P .. 'held', now + tonumber(ARGV[2]), handle .. '/' .. worker)
    else
      call('ZREM', P .. 'held', handle .. '/' .. worker)
      call('HDEL', P .. 'held:' .. worker, handle)
    end
  end
end
return { jobs_reply() }
