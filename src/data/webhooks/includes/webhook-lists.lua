-- @include "webhooks.lua"

-- Lists of the webhook store in the hash `ls`: `<name>` holds how many members there are and the next place. Places count from 0 and are
-- never given twice; 256 of them are in the field `<name>:<n>`, 6 bytes each, 0 where the member is gone.
-- Needs webhooks.lua.
local lists = P .. 'ls'
local places_per_field, place_width = 256, 6
local empty_place = string.rep('\0', place_width)

local function list_head(name)
  local count, next_place = string.match(call('HGET', lists, name) or '0 0', '^(%d+) (%d+)$')
  return tonumber(count), tonumber(next_place)
end

local function list_field(name, place)
  return name .. ':' .. integer(math.floor(place / places_per_field))
end

-- Returns the place.
local function list_append(name, member)
  local count, place = list_head(name)
  local field = list_field(name, place)
  local packed = call('HGET', lists, field) or ''
  -- What was there before may have been removed with its field.
  local missing = place % places_per_field - #packed / place_width
  packed = packed .. string.rep(empty_place, missing) .. struct.pack('>I6', tonumber(member))
  call('HSET', lists, field, packed, name, integer(count + 1) .. ' ' .. integer(place + 1))
  return integer(place)
end

local function list_remove(name, place)
  place = tonumber(place)
  local field = list_field(name, place)
  local packed = call('HGET', lists, field) or ''
  local at = place % places_per_field * place_width
  local member = string.sub(packed, at + 1, at + place_width)
  if member == '' or member == empty_place then
    return
  end
  packed = string.sub(packed, 1, at) .. empty_place .. string.sub(packed, at + place_width + 1)
  if string.find(packed, '[^%z]') then
    call('HSET', lists, field, packed)
  else
    call('HDEL', lists, field)
  end
  local count, next_place = list_head(name)
  call('HSET', lists, name, integer(count - 1) .. ' ' .. integer(next_place))
end

-- Up to `most` members { place, number } from `place` on, upwards (step 1) or downwards (-1), out of at most `max_fields` fields; then
-- the place to go on from, nil at the end.
local function list_walk(name, place, step, most, max_fields)
  local _, next_place = list_head(name)
  local found = {}
  place = math.min(place, step < 0 and next_place - 1 or next_place)
  for _ = 1, max_fields do
    if place < 0 or place >= next_place then
      return found, nil
    end
    local first = math.floor(place / places_per_field) * places_per_field
    local packed = call('HGET', lists, list_field(name, place)) or ''
    while place >= first and place < first + places_per_field and place < next_place do
      local at = (place - first) * place_width
      local member = string.sub(packed, at + 1, at + place_width)
      if member ~= '' and member ~= empty_place then
        if #found == most then
          return found, place
        end
        found[#found + 1] = { integer(place), integer((struct.unpack('>I6', member))) }
      elseif packed == '' then
        place = step < 0 and first or first + places_per_field - 1
      end
      place = place + step
    end
  end
  return found, place >= 0 and place < next_place and place or nil
end
