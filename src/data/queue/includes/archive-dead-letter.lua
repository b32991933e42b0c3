-- @include "remove.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "status-counts.lua"
-- @include "failures-index.lua"

-- Archives a dead letter: it stays as a failed message, for as long as finished ones stay.
local function archive_dead_letter(id)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, 'c', 't', 'q', 'i')
  local t = call('HMGET', P .. 't:' .. m[2], 'o', 'r', 'd')
  remove_dead_letter(id, m[1], t[1], t[2], t[3], m[3])
  local stamp = new_stamp()
  call('XADD', P .. 'fin', stamp, 'i', id)
  call('HSET', key, 's', 'x', 'c', stamp, 'dc', m[1])
  if t[1] then
    note_failure(t[1], id, m[4])
    count_status(t[1], 'q', 'x')
  end
end
