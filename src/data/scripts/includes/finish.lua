-- Ends a message that is not held: `d` delivered, `q` dead letter (with reason). History entries `fin` and `dead` are what
-- pruning walks. Answers the fields to write into the message's hash.
local function finish(id, org, status, reason)
  local ms = monotonic_ms()
  local number = counter()
  local stamp = ms .. '-' .. number
  if status == 'q' then
    call('XADD', P .. 'dead', stamp, 'i', id)
    index_add(P .. 'i:dead:' .. org, ms, number, id)
    local n = call('HGET', P .. 'm:' .. id, 't')
    count_dead_letter(org, n and call('HGET', P .. 't:' .. n, 'd') or '', reason, 1)
    return 's', status, 'c', stamp, 'q', reason
  end
  call('XADD', P .. 'fin', stamp, 'i', id)
  return 's', status, 'c', stamp
end

-- Sends an unfinished message that nobody holds to the dead letters; of a batch each member.
local function bury(id, org, reason)
  if call('HGET', P .. 'm:' .. id, 'e') == batch_marker then
    batch_end(id, 'q', reason)
    return
  end
  call('HDEL', P .. 'm:' .. id, 'd')
  call('HSET', P .. 'm:' .. id, finish(id, org, 'q', reason))
  call('HINCRBY', ctl, 'open', -1)
end
