-- @include "../../shard/includes/shard.lua"

-- Listing indexes `i:…`, newest last. A small one is a sorted set (score milliseconds, member 13-digit number + id), because
-- that fits into one listpack; from 100 entries on it is a stream (entry id `<ms>-<number>`), which costs a third per entry.
-- Turning one takes 0.5 ms, and targets of the same events come to the limit at once: a script turns one, the next ones turn the others, which
-- have a few hundred entries by then when the scripts add many.
local index_member, index_add, index_remove, index_key
do
  local index_keys = {}

  -- The index of this name, `i:<name>`.
  function index_key(name)
    local key = index_keys[name]
    if not key then
      key = P .. 'i:' .. name
      index_keys[name] = key
    end
    return key
  end

  local index_limit = 100
  local has_turned_index = false

  -- Size of a sorted set, or `stream`, as this script has seen it.
  local index_seen = {}

  local function index_kind(key)
    local seen = index_seen[key]
    if seen == nil then
      local kind = call('TYPE', key).ok
      seen = kind == 'none' and 0 or kind == 'zset' and call('ZCARD', key) or kind
    end
    if type(seen) == 'number' and seen >= index_limit and not has_turned_index then
      has_turned_index = true
      local all = call('ZRANGE', key, 0, -1, 'WITHSCORES')
      call('DEL', key)
      for k = 1, #all, 2 do
        call('XADD', key, integer(tonumber(all[k + 1])) .. '-' .. integer(tonumber(string.sub(all[k], 1, 13))), F.entry.message, string.sub(all[k], 14))
      end
      seen = 'stream'
    end
    index_seen[key] = seen
    return seen
  end

  function index_member(number, id)
    return string.format('%013.0f', tonumber(number)) .. id
  end

  -- `stamp`: of new_stamp.
  function index_add(key, stamp, id)
    local kind = index_seen[key]
    if kind ~= 'stream' then
      kind = index_kind(key)
    end
    if kind == 'stream' then
      call('XADD', key, stamp, F.entry.message, id)
    elseif type(kind) == 'number' then
      local ms, number = string.match(stamp, '^(%d+)-(%d+)$')
      call('ZADD', key, ms, index_member(number, id))
      index_seen[key] = kind + 1
    end
  end

  -- `stamp`: as given to index_add.
  function index_remove(key, stamp, id)
    local kind = call('TYPE', key).ok
    if kind == 'zset' then
      call('ZREM', key, index_member(string.match(stamp, '-(%d+)$'), id))
    elseif kind == 'stream' then
      call('XDEL', key, stamp)
      if call('XLEN', key) == 0 then
        call('DEL', key)
      end
    end
  end
end
