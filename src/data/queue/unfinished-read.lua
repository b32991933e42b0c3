#!lua flags=no-writes,allow-oom
-- The unfinished bytes of a shard by account (includes/unfinished-state.lua), and the limit of the server on which it is.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] memory limit in bytes where Redis has none, or ''.
-- Reply: {what names the server, its memory limit in bytes or 0, accounts that are refused, separated by spaces, `ub` as a flat list}.
-- @include "../shard/includes/shard.lua"
-- @include "includes/memory.lua"

local server = redis.pcall('INFO', 'server')
local _, limit = memory_limits(ARGV[1])
return {
  type(server) == 'string' and string.match(server, 'run_id:(%w+)') or '',
  limit or 0,
  call('HGET', ctl, F.control.accounts_over) or '',
  call('HGETALL', P .. 'ub'),
}
