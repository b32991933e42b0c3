-- Counters of an organization, `k:<org>`: field source or route `<events> <last ms>`; destination
-- `<deliveries> <successes> <latency ms> <last ms>`. Collected per script and written once per id.
local counts = {}

local function count_event(org, id)
  local key = org .. ' ' .. id
  counts[key] = counts[key] or { org, id, 0 }
  counts[key][3] = counts[key][3] + 1
end

local function write_event_counts()
  for _, c in pairs(counts) do
    local stored = string.match(call('HGET', P .. 'k:' .. c[1], c[2]) or '', '^(%d+)')
    call('HSET', P .. 'k:' .. c[1], c[2], whole(tonumber(stored or '0') + c[3]) .. ' ' .. whole(now))
  end
end

local function count_delivery(org, id, finished, succeeded, latency)
  local key = org .. ' ' .. id
  local c = counts[key] or { org, id, 0, 0, 0 }
  counts[key] = c
  c[3], c[4], c[5] = c[3] + finished, c[4] + succeeded, c[5] + latency
end

local function write_delivery_counts()
  for _, c in pairs(counts) do
    local d, s, l = string.match(call('HGET', P .. 'k:' .. c[1], c[2]) or '', '^(%d+) (%d+) (%d+)')
    local value = whole(tonumber(d or '0') + c[3]) .. ' ' .. whole(tonumber(s or '0') + c[4]) .. ' ' .. whole(tonumber(l or '0') + c[5])
    call('HSET', P .. 'k:' .. c[1], c[2], value .. ' ' .. whole(now))
  end
end
