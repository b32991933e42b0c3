-- Takes an organization off a list of those where something may be left to do, unless more was begun there meanwhile.
-- KEYS[1] the list: a sorted set by when something was begun last.
-- ARGV[1] organization, [2] its score when the work on it began.
-- Reply: 1 when it was taken off.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
return redis.call('ZREM', KEYS[1], ARGV[1])
