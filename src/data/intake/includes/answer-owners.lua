-- Bytes of the keys that each credential has claimed, in the hash KEYS[4] of idempotency-claim.lua. Keys that a process of the release before has claimed
-- have no owner.
local answer_owners = {
  -- What a key takes beside its answer.
  key_bytes = 430,
}
do
  local owners = KEYS[4]

  local function owner_of(key)
    local bytes, credential = string.match(redis.call('HGET', owners, key) or '', '^(%d+) (.*)$')
    return credential, tonumber(bytes or '0')
  end

  -- `bytes`: of the answer.
  function answer_owners.own(key, credential, bytes)
    bytes = bytes + answer_owners.key_bytes
    redis.call('HSET', owners, key, string.format('%.0f %s', bytes, credential))
    redis.call('HINCRBY', owners, '#' .. credential, bytes)
  end

  function answer_owners.forget(key)
    local credential, bytes = owner_of(key)
    if credential then
      redis.call('HDEL', owners, key)
      if redis.call('HINCRBY', owners, '#' .. credential, -bytes) <= 0 then
        redis.call('HDEL', owners, '#' .. credential)
      end
    end
  end

  function answer_owners.grow(key, bytes)
    local credential = owner_of(key)
    if credential then
      answer_owners.forget(key)
      answer_owners.own(key, credential, bytes)
    end
  end

  function answer_owners.bytes_of(credential)
    return tonumber(redis.call('HGET', owners, '#' .. credential) or '0')
  end
end
