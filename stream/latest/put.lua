-- KEYS[1]: the hash of one partition. ARGV: generation, then field, offset, payload of each record.
-- A value begins with the generation in 10 and the offset in 20 digits: longer numbers than Lua's
-- doubles hold exactly, so they are compared as strings.
local generation = string.rep('0', 10 - #ARGV[1]) .. ARGV[1]
for i = 2, #ARGV, 3 do
  local head = generation .. string.rep('0', 20 - #ARGV[i + 1]) .. ARGV[i + 1]
  local kept = redis.call('HGET', KEYS[1], ARGV[i])
  if not kept or string.sub(kept, 1, 30) < head then
    redis.call('HSET', KEYS[1], ARGV[i], head .. ARGV[i + 2])
  end
end
return 0
