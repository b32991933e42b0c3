-- Takes an organization off the list of those where something may be left to remove, unless somebody has begun to delete there meanwhile.
-- KEYS[1] the list: a sorted set by when somebody began last.
-- ARGV[1] organization, [2] its score when the removal began.
-- Reply: 1 when it was taken off.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
return redis.call('ZREM', KEYS[1], ARGV[1])
