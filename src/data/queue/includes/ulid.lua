-- @include "../../shard/includes/shard.lua"

-- Names of batches.
local crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

local function crockford_digit(value)
  return string.sub(crockford, value + 1, value + 1)
end

-- A ULID: the time in ms, then 80 bits that no other worker, and not this one at another time, comes to.
local function batch_id(worker)
  local digits, rest = {}, now
  for k = 10, 1, -1 do
    digits[k] = crockford_digit(rest % 32)
    rest = math.floor(rest / 32)
  end
  local hash = redis.sha1hex(P .. worker .. ' ' .. integer(now_us) .. ' ' .. counter())
  for k = 1, 16 do
    digits[10 + k] = crockford_digit(tonumber(string.sub(hash, 2 * k - 1, 2 * k), 16) % 32)
  end
  return table.concat(digits)
end
