-- KEYS[1]: the hash of one partition. ARGV: generation, the stretch covered (from, next), then field,
-- offset, payload of each record. Returns 1 if all below next is in the hash, else 0.
-- A value begins with the generation in 10 and the offset in 20 digits: longer numbers than Lua's
-- doubles hold exactly, so they are compared as strings.
local function digits(n, width) return string.rep('0', width - #n) .. n end
local generation = digits(ARGV[1], 10)

local function newer(field, offset, payload)
  local head = generation .. digits(offset, 20)
  local kept = redis.call('HGET', KEYS[1], field)
  if not kept or string.sub(kept, 1, 30) < head then
    redis.call('HSET', KEYS[1], field, head .. payload)
  end
end

for i = 4, #ARGV, 3 do
  newer(ARGV[i], ARGV[i + 1], ARGV[i + 2])
end

local kept = redis.call('HGET', KEYS[1], '.next')
local complete = kept and string.sub(kept, 1, 30) >= generation .. digits(ARGV[2], 20)
if not complete and ARGV[2] ~= '0' then
  return 0
end
newer('.next', ARGV[3], '')
return 1
