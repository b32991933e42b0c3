-- How much memory Redis uses, and its limit in bytes; nil when there is none. `configured` is the limit in bytes that counts where Redis itself has
-- no maxmemory, or ''.
local function memory_limits(configured)
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then
    return nil
  end
  local used = tonumber(string.match(info, 'used_memory:(%d+)'))
  local limit = tonumber(string.match(info, 'maxmemory:(%d+)') or '0')
  if limit == 0 then
    limit = tonumber(configured) or 0
  end
  if not used or limit == 0 then
    return nil
  end
  return used, limit
end

-- How full Redis is, in thousandths of its memory limit; nil when there is none.
local function memory_permille(configured)
  local used, limit = memory_limits(configured)
  return used and math.floor(1000 * used / limit)
end
