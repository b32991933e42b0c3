-- @include "index.lua"
-- @include "../../shard/includes/shard.lua"
-- @created-on-first-use

-- Index of the messages of an organization that have a failed attempt or ended unsent, `i:bad:<org>`: a sorted set by creation (as the small indexes of
-- index.lua), in the shard where the message was created. Entries stay until the message is pruned, also when a later attempt succeeds. A message that was
-- never anything but successful has none.
--   i:batch:<org>  there while a batch of the organization has failed and waits for its next attempt: its members have no entry for that

local batch_note_s = 604800

-- `stamp`: field i of the message. The id of a message that was created in another shard is longer.
local function note_failure(org, id, stamp)
  if stamp and #id == 25 then
    call('ZADD', P .. 'i:bad:' .. org, string.match(stamp, '^%d+'), index_member(string.match(stamp, '-(%d+)$'), id))
  end
end

local function note_batch_failure(org)
  call('SET', P .. 'i:batch:' .. org, '1', 'EX', batch_note_s)
end

local function forget_failure(org, id, stamp)
  call('ZREM', P .. 'i:bad:' .. org, index_member(string.match(stamp, '-(%d+)$'), id))
end
