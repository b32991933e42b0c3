#!lua
-- The output of a transform, which is kept once for all messages of an event and a route: asks for it, and keeps the given one when
-- there is none. Without allow-oom: what finds no room is tried again.
--
-- KEYS: see ../shard/includes/shard.lua.
-- ARGV[1] by name (namedArgument in src/redis/script.ts): message, event, route. ARGV[2] output (event-output.ts), or '' to ask only.
-- Reply: the output that was there before, or ''.
-- @include "../shard/includes/shard.lua"
-- @include "includes/output.lua"
-- @include "includes/unfinished.lua"
-- @include "../../redis/scripts/includes/json.lua"
-- @include "includes/unfinished-changes.lua"

local asked = decoded(ARGV[1])
local message, event, route, output = asked.message, asked.event, asked.route, ARGV[2]
local key = P .. 'y:' .. event
local y = call('HGET', P .. 'm:' .. message, F.message.has_output)
local kept = call('HGET', key, output_field(y or '1', route))
if not y and (kept or output ~= '') and call('EXISTS', P .. 'm:' .. message) == 1 and call('EXISTS', P .. 'e:' .. event) == 1 then
  if not kept then
    call('HSET', key, route, output)
    grow_event(event, nil, #output)
    write_unfinished()
  end
  call('HSET', P .. 'm:' .. message, F.message.has_output, '1')
end
return kept or ''
