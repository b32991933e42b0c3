#!lua flags=no-writes
-- Names targets by number, for the search after a route or a destination went away, and for the review of paused ones and of what waits by
-- its setting: blocked, after failures, or with a rate that has been used; of those that share a limiter which has been used, one.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] first number, or `paused`; [2] how many to read; [3] cursor of the paused ones (begin with 0), or `bound`: only those that wait.
-- Reply: {next number or cursor, 0 at the end; targets {number, org, route, destination, revision of its setting or ''}}.
-- @include "../shard/includes/shard.lua"

local found, shared = {}, {}
local function is_first_of_used(limiter)
  if not limiter or shared[limiter] then
    return false
  end
  shared[limiter] = true
  return call('EXISTS', P .. 'used:' .. limiter) == 1
end
local function add(n)
  local t = call('HMGET', P .. 't:' .. n, F.target.organization, F.target.route, F.target.destination, F.target.revision, F.target.blocked_by,
    F.target.circuit_state, F.target.shared_limiter)
  if t[1] and (ARGV[3] ~= 'bound' or t[5] or t[6] or call('EXISTS', P .. 'rate:' .. t[3]) == 1 or is_first_of_used(t[7])) then
    found[#found + 1] = { n, t[1], t[2], t[3], t[4] or '' }
  end
end

if ARGV[1] == 'paused' then
  local scan = call('SSCAN', P .. 'paused', ARGV[3], 'COUNT', ARGV[2])
  for _, n in ipairs(scan[2]) do
    add(n)
  end
  return { scan[1], found }
end
local first = tonumber(ARGV[1])
local last = first + tonumber(ARGV[2]) - 1
local highest = tonumber(call('HGET', ctl, F.control.last_target) or '0')
for n = first, math.min(last, highest) do
  add(integer(n))
end
return { last < highest and last + 1 or 0, found }
