-- @include "../../shard/includes/packed.lua"
-- @include "../../shard/includes/shard.lua"

-- The archive of finished messages, for organizations that have one (archive.ts):
--   arc          hash organization → destination, '' while there is none that can be written to
--   fin:<org>    its part of the history: entries leave `fin` for it in their order, those of its webhooks among them
--   ah           sorted set of organizations with such a part, by the time (ms) of its oldest entry, or of the next look at it
--   az           sorted set of those that have something to write, by when (ms) that is; who writes holds it until then
--   arw          set of those whose archive fails, or has lost something
--   ar:<org>     hash with the fields of F.archive (../../shard/hash-fields.ts)
local organizations_of_targets, have_archives = {}, {}

-- The organization, with an archive, of a message; nil. What is below a name with `+` belongs to the same, alerts (`~`) to none.
local function archive_of(id)
  local m = call('HMGET', P .. 'm:' .. id, F.message.target, F.message.pack_organization)
  local n = m[1]
  if not n and not m[2] then
    return nil
  end
  if n and organizations_of_targets[n] == nil then
    local org = call('HGET', P .. 't:' .. n, F.target.organization) or ''
    organizations_of_targets[n] = string.byte(org) == 43 and string.sub(org, 2) or org
  end
  local org = m[2] or organizations_of_targets[n]
  if have_archives[org] == nil then
    have_archives[org] = call('HEXISTS', P .. 'arc', org) == 1
  end
  return have_archives[org] and org or nil
end

local function is_after(stamp, other)
  local ms, number = string.match(stamp, '^(%d+)-(%d+)$')
  local other_ms, other_number = string.match(other, '^(%d+)-(%d+)$')
  ms, other_ms = tonumber(ms), tonumber(other_ms)
  return ms > other_ms or (ms == other_ms and tonumber(number) > tonumber(other_number))
end

local moved_to_archives = {}

-- Moves an entry of `fin` into the part of its organization: of a pack each result is an entry of its own there. Returns how many it became.
local function move_to_archive(org, stamp, id)
  local count = 1
  if packed.is_pack(id) then
    local ms, first = string.match(stamp, '^(%d+)-(%d+)$')
    count = tonumber(call('HGET', P .. 'm:' .. id, F.message.pack_count) or '0')
    for number = 0, count - 1 do
      call('XADD', P .. 'fin:' .. org, ms .. '-' .. integer(first + number), F.entry.message, packed.member(id, number))
    end
  else
    call('XADD', P .. 'fin:' .. org, stamp, F.entry.message, id)
  end
  call('XDEL', P .. 'fin', stamp)
  if not moved_to_archives[org] then
    call('ZADD', P .. 'ah', 'NX', string.match(stamp, '^%d+'), org)
  end
  moved_to_archives[org] = (moved_to_archives[org] or 0) + count
  return count
end

-- Lets the archive be written at this time (ms), if nobody writes it and it does not wait after a failure.
local function write_archive_at(org, at)
  local a = call('HMGET', P .. 'ar:' .. org, F.archive.lease_end_ms, F.archive.failures)
  if not a[2] and tonumber(a[1] or '0') <= now then
    call('ZADD', P .. 'az', 'LT', integer(at), org)
  end
end

-- Notes what was moved; it is written after `age` ms, or at once when so many `records` wait.
local function write_moved(records, age)
  local has_moved = false
  for org, count in pairs(moved_to_archives) do
    has_moved = true
    call('ZADD', P .. 'az', 'NX', integer(now + age), org)
    if call('HINCRBY', P .. 'ar:' .. org, F.archive.waiting, count) >= records then
      write_archive_at(org, now)
    end
  end
  if has_moved and call('XLEN', P .. 'fin') == 0 then
    call('DEL', P .. 'fin')
  end
end

-- Notes when the part of an organization is to be looked at by pruning.
local function note_oldest(org)
  local head = call('XRANGE', P .. 'fin:' .. org, '-', '+', 'COUNT', 1)[1]
  if head then
    call('ZADD', P .. 'ah', string.match(head[1], '^%d+'), org)
    return
  end
  call('DEL', P .. 'fin:' .. org)
  call('ZREM', P .. 'ah', org)
  if call('HEXISTS', P .. 'arc', org) == 0 then
    call('DEL', P .. 'ar:' .. org)
  end
end
