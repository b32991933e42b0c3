-- @include "shard.lua"
-- @created-on-first-use

-- Results of the routes whose filter an event has not met: one record per event, `m:<pack>`, a hash with the fields event, status,
-- index_stamp and end_stamp of a message that has ended, and those of a pack: its organization, how many results it has, and their text (../packed-results.ts). A text
-- above 512 bytes is in the field `~` of `y:<event>`, where it counts to the bytes of the event.
-- A pack is named by the first 21 characters of the key of its event, and the delivery of a result by those and its number, four digits of base 32. Its
-- entries in indexes have the stamp of its first result; the numbers behind it belong to the others. `i:pk:<org>` is the index of packs.
local packed = {}
do
  local pack_length, max_short = 21, 512
  local digits = 'abcdefghijklmnopqrstuvwxyz234567'

  -- Whether an id in an index or among those of an event is that of a pack.
  function packed.is_pack(id)
    return #id == pack_length
  end

  function packed.name_of(event)
    return string.sub(event, 1, pack_length)
  end

  -- The key of the result with this number.
  function packed.member(pack, number)
    local text = ''
    for _ = 1, 4 do
      local digit = number % 32
      text = string.sub(digits, digit + 1, digit + 1) .. text
      number = (number - digit) / 32
    end
    return pack .. text
  end

  -- Pack and number of a result by its key; nil for a key that cannot be one.
  function packed.pack_and_number(id)
    if #id ~= pack_length + 4 then
      return nil
    end
    local number = 0
    for k = pack_length + 1, #id do
      local digit = string.find(digits, string.sub(id, k, k), 1, true)
      if not digit then
        return nil
      end
      number = number * 32 + digit - 1
    end
    return string.sub(id, 1, pack_length), number
  end

  -- Returns the text where it counts to the bytes of the event, else ''.
  function packed.store(pack, event, org, stamp, count, text)
    local key, is_long = P .. 'm:' .. pack, #text > max_short
    call('HSET', key, F.message.event, event, F.message.status, 'f', F.message.index_stamp, stamp, F.message.end_stamp, stamp,
      F.message.pack_organization, org, F.message.pack_count, count, F.message.pack_text, is_long and '' or text)
    if is_long then
      call('HSET', P .. 'y:' .. event, '~', text)
    end
  end

  -- Bytes that a text adds to those of the event.
  function packed.bytes_of(text)
    return #text > max_short and #text or 0
  end

  -- What is stored of a pack: {event, org, count, ms, number of its first result, text}; nil when it is gone.
  function packed.read(pack)
    local m = call('HMGET', P .. 'm:' .. pack, F.message.event, F.message.pack_organization, F.message.pack_count, F.message.index_stamp,
      F.message.pack_text)
    if not m[3] then
      return nil
    end
    local text = m[5] ~= '' and m[5] or call('HGET', P .. 'y:' .. m[1], '~') or ''
    local ms, number = string.match(m[4], '^(%d+)-(%d+)$')
    return { event = m[1], org = m[2], count = tonumber(m[3]), ms = ms, first = tonumber(number), text = text }
  end

  -- A walk over the results of a pack, up to `count` from number `from` on: returns {number, route, what is known of the reason}.
  function packed.results(pack, from, count)
    local found, number = {}, 0
    local start = (string.find(pack.text, '\n', 1, true) or #pack.text) + 1
    for route, why in string.gmatch(string.sub(pack.text, start), '(%S+) ([^\n]*)') do
      if number >= from then
        if #found >= count then
          break
        end
        found[#found + 1] = { number, route, why }
      end
      number = number + 1
    end
    return found
  end

  -- The result for a route; nil where there is none.
  function packed.of_route(pack, route)
    local at = string.find(pack.text, '\n' .. route .. ' ', 1, true)
    if not at then
      return nil
    end
    local _, lines = string.gsub(string.sub(pack.text, 1, at), '\n', '')
    local why = string.match(pack.text, '^%S+ ([^\n]*)', at + 1)
    return { lines - 1, route, why }
  end

  -- A result as message_view (view.lua) has a message.
  function packed.view(pack, result)
    local stamp = pack.ms .. '-' .. integer(pack.first + result[1])
    local m = {
      F.message.event, pack.event, F.message.status, 'f', F.message.max_attempts, '0', F.message.index_stamp, stamp, F.message.end_stamp, stamp,
    }
    local number = tonumber(string.match(result[3], ' (%d+)$') or '0')
    for text in string.gmatch(string.match(pack.text, '^[^\n]*'), '[^\t]+') do
      number = number - 1
      if number == 0 then
        m[#m + 1], m[#m + 2] = F.message.unsent_reason, text
      end
    end
    return { m, pack.org, result[2], '', '', '', '', '', '', '' }
  end

  -- The pack that was viewed last, with all its results: an archive reads one after the other.
  local viewed, viewed_pack, viewed_results

  -- The same of a result by its key; nil where there is none. For scripts that only read.
  function packed.view_of(id)
    local name, number = packed.pack_and_number(id)
    if not name then
      return nil
    end
    if viewed ~= name then
      viewed, viewed_pack = name, packed.read(name)
      viewed_results = viewed_pack and packed.results(viewed_pack, 0, viewed_pack.count)
    end
    local result = viewed_pack and viewed_results[number + 1]
    return result and packed.view(viewed_pack, result) or nil
  end

  -- The event of a message or of a result of a pack; nil when it is gone.
  function packed.event_of(id)
    local name = packed.pack_and_number(id)
    return call('HGET', P .. 'm:' .. id, F.message.event) or name and call('HGET', P .. 'm:' .. name, F.message.event) or nil
  end
end
