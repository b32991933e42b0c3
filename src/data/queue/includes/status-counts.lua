-- @include "../../shard/includes/shard.lua"

-- How many messages of an organization for webhooks (core/webhook.ts) there are of each status letter, `ms:<org>`; gathered per
-- script, and written once at its end (write_status_counts). Of other organizations nothing is counted.
local status_counts = {}

-- A message goes from one letter to another; nil: it is new, or it is gone.
local function count_status(org, from, to)
  if from == to or string.byte(org) ~= 43 then
    return
  end
  local counts = status_counts[org] or {}
  status_counts[org] = counts
  if from then
    counts[from] = (counts[from] or 0) - 1
  end
  if to then
    counts[to] = (counts[to] or 0) + 1
  end
end

-- The letter of a message that waits, by the attempts that it has behind it.
local function waiting_letter(attempts)
  return tonumber(attempts) > 0 and 'r' or 'p'
end

local function write_status_counts()
  for org, counts in pairs(status_counts) do
    for letter, by in pairs(counts) do
      if by ~= 0 and call('HINCRBY', P .. 'ms:' .. org, letter, by) == 0 then
        call('HDEL', P .. 'ms:' .. org, letter)
      end
    end
  end
end
