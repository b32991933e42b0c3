-- Retries that wait for their time: `due`, and in the hash `retries` how many of each target. What a worker of an earlier release
-- moves is not counted there; as soon as none waits, the counts begin anew (tend.lua).
local function retry_at(n, id, due)
  if call('ZADD', P .. 'due', due, n .. ' ' .. id) == 1 then
    call('HINCRBY', P .. 'retries', n, 1)
  end
end

-- Takes a retry out; answers whether it was there.
local function retry_over(n, id)
  if call('ZREM', P .. 'due', n .. ' ' .. id) == 0 then
    return false
  end
  if call('HINCRBY', P .. 'retries', n, -1) <= 0 then
    call('HDEL', P .. 'retries', n)
  end
  return true
end
