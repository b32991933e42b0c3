#!lua
-- Makes new messages of the same events for the first targets of messages that have ended. Without allow-oom, as accept.lua.
--
-- KEYS: see ../shard/includes/shard.lua; the shard is the home of the old messages and of the new ones.
-- ARGV per message, of at most 50: old message, new message, id of the old message.
-- Reply: per message 1 made, or it was before (a re-sent call); `gone`: there is no such message; `payload`: its event is gone. `full`, and nothing
-- is made: too much memory is in use.
-- @include "../shard/includes/shard.lua"
-- @include "../shard/includes/target.lua"
-- @include "../shard/includes/count.lua"
-- @include "../queue/includes/status-counts.lua"
-- @include "../queue/includes/unfinished.lua"
-- @include "../queue/includes/new-message.lua"
-- @include "../queue/includes/event-copy.lua"
-- @include "../queue/includes/outbox.lua"

local outcomes, pending = {}, {}
for k = 1, #ARGV, 3 do
  local at, old, new = (k + 2) / 3, ARGV[k], ARGV[k + 1]
  if call('EXISTS', P .. 'm:' .. new) == 1 then
    outcomes[at] = 1
  else
    local m = call('HMGET', P .. 'm:' .. old, 'e', 't', 'o', 'x', 'y', 'sb', 'tf', 's', 'dr')
    local n = m[3] or m[2]
    local t = n and call('HMGET', P .. 't:' .. n, 'o', 'r', 'd') or {}
    if not t[1] then
      outcomes[at] = 'gone'
    elseif call('EXISTS', P .. 'e:' .. m[1]) == 0 then
      outcomes[at] = 'payload'
    else
      require_lane(t[1], t[2], t[3])
      outcomes[at] = 1
      pending[#pending + 1] = { old = old, new = new, id = ARGV[k + 2], m = m, n = n, t = t }
    end
  end
end
if #pending == 0 then
  return outcomes
end
if call('HGET', ctl, 'full') then
  return 'full'
end

local touched = {}
for _, each in ipairs(pending) do
  local m, n, t, new = each.m, each.n, each.t, each.new
  event_refs(m[1], { new })
  local home, home_key = home_of(m[1])
  if home then
    send(home, 'n', 'e', home_key, 'm', new)
  end
  call('HINCRBY', ctl, 'open', 1)
  local max = m[4] or '1'
  if m[6] then
    max = max .. ' ' .. m[6] .. ' ' .. (m[7] or '')
  end
  if new_message(m[1], t[1], n, { id = new, route = t[2], destination = t[3], max = max }) then
    touched[n] = true
  end
  if m[8] == 'q' then
    local retries = tonumber(string.match(m[9] or '0', '^%d+'))
    call('HSET', P .. 'm:' .. each.old, 'dr', whole(retries + 1) .. ' ' .. whole(now))
  end
  call('HSET', P .. 'm:' .. new, 'rp', each.id)
  if m[5] then
    call('HSET', P .. 'm:' .. new, 'y', m[5])
  end
end
write_counts()
write_status_counts()
write_unfinished()
activate_all(touched)
return outcomes
