-- @created-on-first-use

-- Runs independent pieces of work. When one fails, its item is put back, and the other pieces still run. Redis does not roll back the writes of a script that
-- fails, so an item that the script has removed would be lost. promote.lua replies with the error. Other scripts leave the item that was put back to promote.lua.
local apart = { again_ms = 1000 }
do
  local failure = nil

  -- Runs `work` with the arguments that follow, and `put_back` with the same if it fails.
  function apart.run(work, put_back, ...)
    local is_done, trouble = pcall(work, ...)
    if not is_done then
      failure = failure or type(trouble) == 'table' and trouble.err or tostring(trouble)
      put_back(...)
    end
  end

  -- What the script replies: the error, or else `reply`.
  function apart.reply(reply)
    return failure and redis.error_reply(failure) or reply
  end
end
