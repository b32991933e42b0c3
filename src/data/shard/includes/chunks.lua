-- @include "shard.lua"
-- @created-on-first-use

-- A payload above 1 MiB is stored beside the text of its event, in chunks of 512 KiB: strings `c:<token>:<number>`, counted from 0. The process that stores the
-- event writes them one by one, with a lifetime, before a script names them. The first line of the text then ends with `<token>/<bytes>`, and the chunks
-- have no lifetime any more. Chunks that no script has named expire at the end of their lifetime. Named chunks are removed with the event.
local chunks = {}
do
  local chunk_size = 524288

  -- Token and bytes of the chunks that a text, or its beginning, names; nil: its payload is whole.
  function chunks.of(text)
    local token, bytes = string.match(text, '^%S+ %S+ %S+ %S+ %S+ (%w+)/(%d+)\n')
    return token, tonumber(bytes)
  end

  local function chunk_keys(token, bytes)
    local keys = {}
    for k = 0, math.ceil(bytes / chunk_size) - 1 do
      keys[k + 1] = P .. 'c:' .. token .. ':' .. k
    end
    return keys
  end

  function chunks.are_here(token, bytes)
    local keys = chunk_keys(token, bytes)
    return call('EXISTS', unpack(keys)) == #keys
  end

  function chunks.name(token, bytes)
    for _, key in ipairs(chunk_keys(token, bytes)) do
      call('PERSIST', key)
    end
  end

  function chunks.remove(token, bytes)
    call('UNLINK', unpack(chunk_keys(token, bytes)))
  end

  -- Removes those that nobody has named.
  function chunks.drop(token, bytes)
    for _, key in ipairs(chunk_keys(token, bytes)) do
      if call('PTTL', key) >= 0 then
        call('UNLINK', key)
      end
    end
  end

  -- How many bytes the chunks of an event that is here have.
  function chunks.bytes_of(event)
    local head = redis.pcall('GETRANGE', P .. 'e:' .. event, 0, 255)
    local _, bytes = chunks.of(type(head) == 'string' and head or '')
    return bytes or 0
  end
end
