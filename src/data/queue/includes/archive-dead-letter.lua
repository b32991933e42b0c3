-- @include "remove.lua"
-- @include "../../shard/includes/shard.lua"
-- @include "status-counts.lua"
-- @include "failures-index.lua"

-- Archives a dead letter: it stays as a failed message, for as long as finished ones stay.
local function archive_dead_letter(id)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, F.message.end_stamp, F.message.target, F.message.dead_letter_reason, F.message.index_stamp)
  local t = call('HMGET', P .. 't:' .. m[2], F.target.organization, F.target.route, F.target.destination)
  remove_dead_letter(id, m[1], t[1], t[2], t[3], m[3])
  local stamp = new_stamp()
  call('XADD', P .. 'fin', stamp, F.entry.message, id)
  call('HSET', key, F.message.status, 'x', F.message.end_stamp, stamp, F.message.archived_end_stamp, m[1])
  if t[1] then
    note_failure(t[1], id, m[4])
    count_status(t[1], 'q', 'x')
  end
end
