-- Some fields of a hash with their values, one after the other, at most `most`; none only when there are none. One HSCAN may find nothing in a hash of
-- which much was removed.
local function some_fields(key, most)
  local cursor = '0'
  repeat
    local scan = redis.call('HSCAN', key, cursor, 'COUNT', 1000)
    cursor = scan[1]
    if #scan[2] > 0 then
      return { unpack(scan[2], 1, math.min(#scan[2], 2 * most)) }
    end
  until cursor == '0'
  return {}
end
