-- Failover: a message moves to the target (same route, failover destination) and stays there. In a target's hash: fo numbers of
-- the targets that come after it, in order; fa failed attempts after which a message moves to the first (absent: when the
-- retries are used up). In a moved message's hash: o number of its first target, k attempts made before the move, w why it
-- moved, j stamp of its entry in the index of the destination where it is now.

-- The first candidate whose circuit is not open; with `any` the first of all, when each is open. nil: there is none.
local function failover_candidate(fo, any)
  local first = nil
  for n in string.gmatch(fo or '', '%d+') do
    local t = call('HMGET', P .. 't:' .. n, 'o', 'cs')
    if t[1] then
      if t[2] ~= 'o' then
        return n
      end
      first = first or n
    end
  end
  return any and first or nil
end

-- Moves a message that stands in no lane any more to the candidate.
local function fail_over(id, from, candidate, why)
  local key = P .. 'm:' .. id
  local m = call('HMGET', key, 'o', 'j', 'n')
  local destination = call('HGET', P .. 't:' .. candidate, 'd')
  if m[1] then
    index_remove(P .. 'i:' .. call('HGET', P .. 't:' .. from, 'd'), m[2], id)
  end
  local ms, number = monotonic_ms(), counter()
  index_add(P .. 'i:' .. destination, ms, number, id)
  call('HDEL', key, 'd')
  call('HSET', key, 't', candidate, 'o', m[1] or from, 'k', m[3] or '0', 'w', why, 'j', ms .. '-' .. number, 's', m[3] and 'r' or 'p')
  enqueue(candidate, id)
  activate(candidate)
end
