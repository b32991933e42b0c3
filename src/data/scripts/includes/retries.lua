-- Retries that wait for their time: `due`, and how many of a target (dn in its hash).
local function retry_at(n, id, due)
  if call('ZADD', P .. 'due', due, n .. ' ' .. id) == 1 then
    call('HINCRBY', P .. 't:' .. n, 'dn', 1)
  end
end

-- Takes a retry out; answers whether it was there. Retries of earlier releases were not counted.
local function retry_over(n, id)
  if call('ZREM', P .. 'due', n .. ' ' .. id) == 0 then
    return false
  end
  if call('HINCRBY', P .. 't:' .. n, 'dn', -1) <= 0 then
    call('HDEL', P .. 't:' .. n, 'dn')
  end
  return true
end
