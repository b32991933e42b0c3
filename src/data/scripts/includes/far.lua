-- Takes one of the tokens that hold an event for other shards (outbox.lua); the event goes with the last of them, once none of its
-- messages is here. Answers whether it was there.
local function far_release(event, token)
  local far = call('HGET', P .. 'far', event)
  local from, to = string.find((far or '') .. ' ', ' ' .. token .. ' ', 1, true)
  if not from then
    return false
  end
  local left = string.sub(far, 1, from - 1) .. string.sub(far, to)
  if left ~= '' then
    call('HSET', P .. 'far', event, left)
    return true
  end
  call('HDEL', P .. 'far', event)
  if tonumber(call('HGET', P .. 'refs', event) or '1') < 1 then
    remove_event(event)
  end
  return true
end
