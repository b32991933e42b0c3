-- @include "batch.lua"
-- @include "index.lua"
-- @include "outbox.lua"
-- @include "shard.lua"
-- @include "target.lua"
-- @include "work.lua"
-- @include "failures-index.lua"

-- Failover: a message moves to the target (same route, failover destination) and stays there. In a target's hash: fo the targets
-- that come after it, in order, each a number or, in another shard, `<shard>/<destination>`; fa failed attempts after which a
-- message moves to the first (absent: when the retries are used up). In a moved message's hash: o number of its first target, or
-- od its first destination where the message came from another shard; k attempts made before the move, w why it moved, j stamp of
-- its entry in the index of the destination where it is now. While it is in another shard: s `m`, u that shard, v entry of the
-- outbox, h how often it has moved between shards.

-- After so many moves between shards a message stays: two shards may each take the other for the better one.
local most_moves = 8

-- The first candidate whose circuit is not open, as far as this shard knows; with `any` the first of all, when each is open. nil:
-- there is none.
local function failover_candidate(fo, any)
  local first = nil
  for candidate in string.gmatch(fo or '', '%S+') do
    if string.find(candidate, '/', 1, true) then
      return candidate
    end
    local t = call('HMGET', P .. 't:' .. candidate, 'o', 'cs')
    if t[1] then
      if t[2] ~= 'o' then
        return candidate
      end
      first = first or candidate
    end
  end
  return any and first or nil
end

-- Moves a message that stands in no lane any more to the candidate; of a batch each member.
local function fail_over(id, from, candidate, why)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, 'o', 'j', 'n', 'od', 'h', 'e', 'i')
  if m[6] == batch_marker then
    batch_end(id, 'f', why, candidate)
    return
  end
  note_failure(call('HGET', P .. 't:' .. from, 'o') or '', id, m[7])
  if m[2] then
    index_remove(P .. 'i:' .. call('HGET', P .. 't:' .. from, 'd'), m[2], id)
  end
  call('HDEL', key, 'd', 'j')
  if not m[4] then
    call('HSET', key, 'o', m[1] or from)
  end
  local shard, destination = string.match(candidate, '^(%d+)/(.+)$')
  if shard then
    local entry = send(shard, 'v', 'm', id, 'd', destination)
    call('HSET', key, 's', 'm', 'u', shard, 'v', entry, 'h', tonumber(m[5] or '0') + 1, 'k', m[3] or '0', 'w', why)
    call('HINCRBY', ctl, 'open', -1)
    return
  end
  local stamp = new_stamp()
  index_add(P .. 'i:' .. call('HGET', P .. 't:' .. candidate, 'd'), stamp, id)
  call('HSET', key, 't', candidate, 'k', m[3] or '0', 'w', why, 'j', stamp, 's', m[3] and 'r' or 'p')
  enqueue(candidate, id)
  activate(candidate)
end
