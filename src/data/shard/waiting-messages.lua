#!lua flags=no-writes
-- Reads the messages of an organization that are in the work streams of its targets, step by step, where these are few: those that wait for an attempt
-- and those of which one is under way.
--
-- KEYS: see includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): org; cursor (begin with 0); max_looks: targets to look at; max_messages; ids of routes or destinations to which
-- the messages belong, none for all.
-- Reply: {next cursor ('0' at the end), messages}, or `many`: there are more, or some that are in no work stream, because they gather in batches, are scheduled or are
-- under way to another shard.
-- @include "includes/shard.lua"
-- @include "includes/target.lua"
-- @include "../../redis/scripts/includes/json.lua"

local wanted = decoded(ARGV[1])
local max, ids, narrow = wanted.max_messages, {}, nil
for _, id in ipairs(wanted.ids) do
  narrow = narrow or {}
  narrow[id] = true
end
if call('EXISTS', P .. 'out') == 1 and call('XLEN', P .. 'out') > 0 then
  return 'many'
end
local scan = call('HSCAN', P .. 'tn:' .. wanted.org, wanted.cursor, 'COUNT', wanted.max_looks)
for k = 1, #scan[2], 2 do
  local route, destination = string.match(scan[2][k], '^(%S+) (%S*)$')
  local n = scan[2][k + 1]
  if not narrow or narrow[route] or narrow[destination] then
    if call('EXISTS', P .. 'bs:' .. n) == 1 or call('HEXISTS', P .. 'scheduled', n) == 1 then
      return 'many'
    end
    for _, lane in ipairs({ n, retry_lane(n) }) do
      local key = P .. 'w:' .. lane
      local entries = call('TYPE', key).ok == 'stream' and call('XRANGE', key, '-', '+', 'COUNT', max + 1) or {}
      if #ids + #entries > max then
        return 'many'
      end
      for _, entry in ipairs(entries) do
        ids[#ids + 1] = entry[2][2]
      end
    end
  end
end
return { scan[1], ids }
