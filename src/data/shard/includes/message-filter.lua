-- @include "event-messages.lua"
-- @include "outcomes.lua"
-- @include "packed.lua"
-- @include "shard.lua"

-- Which messages a filter of routes, destinations and attempts may let pass.
local asked = {
  max = 1000, fields = { F.message.status, F.message.batch, F.message.event, F.message.target, F.message.dead_letter_reason, F.message.first_target,
  F.message.first_destination, F.message.attempts },
}
do
  local routes, destinations, outcome = '', '', nil

  -- `look`: by name the routes and destinations, several with spaces between them, '' for all, and the `outcome` that is asked for (outcomes.lua), nil for any.
  function asked.narrow(look)
    routes, destinations, outcome = look.routes, look.destinations, look.outcome
  end

  -- Whether the filter asks for anything.
  function asked.is_narrow()
    return routes .. destinations ~= '' or outcome ~= nil
  end

  -- Whether one of several, or all where there are none.
  function asked.is_one_of(all, one)
    return all == '' or (one and string.find(' ' .. all .. ' ', ' ' .. one .. ' ', 1, true) ~= nil)
  end

  -- One that has failed over belongs to its first destination, too; one in another shard is judged there.
  local target_fits = {}
  local function may_be_of_target(m)
    if m[1] == 'm' then
      return true
    end
    local n = m[4]
    if target_fits[n] == nil then
      local t = call('HMGET', P .. 't:' .. n, F.target.route, F.target.destination)
      target_fits[n] = { asked.is_one_of(routes, t[1]), asked.is_one_of(destinations, t[2]) }
    end
    local fits = target_fits[n]
    return fits[1] and (fits[2] or m[6] or m[7]) and true or false
  end

  -- The attempts of one that is in another shard, or in a batch, are not known here.
  local function may_match_outcome(id, m)
    return m[1] == 'm' or m[2] or outcomes.may_match(id, tonumber(m[8] or '0'), outcome)
  end

  -- `m`: its fields as in `fields`.
  function asked.may_match(id, m)
    return (routes == '' and destinations == '' or may_be_of_target(m)) and (not outcome or may_match_outcome(id, m))
  end

  -- Whether the filter may let results of filters pass: they have no destination and no attempt.
  function asked.may_be_result()
    return destinations == '' and (not outcome or outcomes.may_be_unsent(outcome))
  end

  -- The results of a pack for the routes, as `packed.of_route` has them, the newest first; nil where all are asked for.
  function asked.results(pack)
    if routes == '' then
      return nil
    end
    local results = {}
    for route in string.gmatch(routes, '%S+') do
      results[#results + 1] = packed.of_route(pack, route)
    end
    table.sort(results, function(one, other)
      return one[1] > other[1]
    end)
    return results
  end

  -- The messages of an event here that may match, those that are in other shards, whether there may be others, and how many were looked at.
  function asked.of_event(event)
    local ids = messages_of(event, call('GETRANGE', P .. 'e:' .. event, 0, 255))
    local found = { ids = {}, elsewhere = {}, is_open = #ids == 0, looked = #ids }
    for _, id in ipairs(ids) do
      if packed.is_pack(id) then
        local pack = asked.may_be_result() and packed.read(id)
        for _, result in ipairs(pack and (asked.results(pack) or packed.results(pack, 0, 1)) or {}) do
          found.ids[#found.ids + 1] = packed.member(id, result[1])
        end
      else
        local m = call('HMGET', P .. 'm:' .. id, unpack(asked.fields))
        if not m[1] then
          found.is_open = true
          found.elsewhere[#found.elsewhere + 1] = #id == 27 and id or nil
        elseif #found.ids < asked.max and asked.may_match(id, m) then
          found.ids[#found.ids + 1] = id
        end
      end
    end
    return found
  end
end
