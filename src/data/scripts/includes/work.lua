-- Appends a message to its target's work stream, which is made on demand. The entry id comes from the shard's counter, so
-- that a stream made again never repeats an id that a slow worker still knows.
local streams_seen = {}
local function enqueue(n, id)
  local w = P .. 'w:' .. n
  if not streams_seen[n] then
    streams_seen[n] = true
    if call('EXISTS', w) == 0 then
      call('XGROUP', 'CREATE', w, 'g', '0', 'MKSTREAM')
      if call('HGET', P .. 't:' .. n, 'b') == 'cap' then
        call('HDEL', P .. 't:' .. n, 'b')
      end
    end
  end
  call('XADD', w, counter() .. '-1', 'i', id)
end

-- Puts what a worker holds back into its stream as a new entry. Nothing happens when somebody has settled it meanwhile.
-- `handle` is `<target>/<entry>`; answers whether it was put back.
local function put_back(handle, worker, id)
  local n, entry = string.match(handle, '^(%d+)/(.+)$')
  call('ZREM', P .. 'held', handle .. '/' .. worker)
  call('HDEL', P .. 'held:' .. worker, handle)
  if call('XACK', P .. 'w:' .. n, 'g', entry) == 0 then
    return false
  end
  call('XDEL', P .. 'w:' .. n, entry)
  local t = call('HMGET', P .. 't:' .. n, 'd')
  if t[1] then
    call('ZREM', P .. 'lease:' .. t[1], handle)
  end
  if call('EXISTS', P .. 'm:' .. id) == 1 then
    local attempts = tonumber(call('HGET', P .. 'm:' .. id, 'n') or '0')
    call('HSET', P .. 'm:' .. id, 's', attempts > 0 and 'r' or 'p')
    enqueue(n, id)
  end
  settle_target(n)
  activate(n)
  return true
end
