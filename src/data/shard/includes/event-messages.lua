-- @include "shard.lua"

-- Ids of the messages of an event, from the first line of its text: one, and what `x:<event>` names besides; and whether these are all.
local function messages_of(event, text)
  local messages = string.match(text, '^%S+ (%S+) ') or '-'
  local ids, known = {}, {}
  local function add(names)
    for id in string.gmatch(names, '%w+') do
      if not known[id] then
        known[id] = true
        ids[#ids + 1] = id
      end
    end
  end
  if messages ~= '*' and messages ~= '-' then
    add(messages)
  end
  local others = call('GET', P .. 'x:' .. event) or ''
  add(others)
  return ids, not string.find(others, '*', 1, true)
end
