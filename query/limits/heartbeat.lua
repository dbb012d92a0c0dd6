-- KEYS[1]: the hash of the replicas, KEYS[2]: the sorted set of recalls.
-- ARGV: replica, its number of beat, the share it has, the share it wants (n means 1/n of a limit, 0 for none), 1 if it
-- leaves or 2 if it has not reported yet what it admitted while it was away, the replica that it replaces or nothing, then the pools to
-- recall.
-- Returns: the time in ms; the share that it has from now on, and the time from which; the replicas as id, ms since its last beat,
-- the largest share that it may be using, 1 if it has left or 2 if it has to
-- tell; the pools recalled within the last second. A beat that was overtaken returns only the time.
-- The shares of all replicas are never more than the whole: one is raised only when the others were lowered, and counts
-- only when a minute has passed in which they may have used more.
local SPAN, FORGET, SETTLE, RECALL = 62000, 300000, 2000, 1000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, seq, have, want, leaves, replaced = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]

local function weight(n) if n == 0 then return 0 end return 1 / n end
local function larger(a, b) if weight(a) > weight(b) then return a end return b end

local born, known, replicas = now, false, {}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  if name == '.born' then
    born = tonumber(value)
  elseif name == '.known' then
    known = true
  else
    -- the number and the time of its last beat, its share, the larger one that it had before and until when that counts, how it is: here, gone or behind
    local s, b, n, before, ends, gone = string.match(value, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d)$')
    local r = {seq = tonumber(s), beat = tonumber(b), n = tonumber(n), before = tonumber(before), ends = tonumber(ends), gone = gone == '1', behind = gone == '2'}
    if (r.gone and r.ends <= now) or (not r.gone and name ~= id and now - r.beat > FORGET) then
      redis.call('HDEL', KEYS[1], name)
    else
      replicas[name] = r
    end
  end
end
if #fields == 0 then redis.call('HSET', KEYS[1], '.born', now) end

local function keep(name, r)
  redis.call('HSET', KEYS[1], name, string.format('%.0f %.0f %d %d %.0f %d', r.seq, r.beat, r.n, r.before, r.ends, r.gone and 1 or r.behind and 2 or 0))
end

local function lower(r, n)
  if weight(r.n) > weight(n) then
    r.before, r.ends = r.ends > now and larger(r.before, r.n) or r.n, now + SPAN
  end
  r.n = n
end

local function leave(name)
  local r = replicas[name]
  if r and not r.gone then
    lower(r, 0)
    if r.ends > now then
      r.gone = true
      keep(name, r)
    else
      replicas[name] = nil
      redis.call('HDEL', KEYS[1], name)
    end
  end
end

if replaced ~= '' and replaced ~= id then leave(replaced) end
local me = replicas[id]
if me and (me.gone or me.seq >= seq) then return {tostring(now)} end
if leaves == '1' then
  leave(id)
  return {tostring(now)}
end
if not me then
  me = {n = have, before = 0, ends = 0, gone = false}
  if have > 0 and not known then
    -- It was here before the store was emptied, so others may have been too.
    known = true
    redis.call('HSET', KEYS[1], '.known', 1)
  end
end
me.seq, me.beat, me.behind = seq, now, leaves == '2'

local from = now
if weight(want) <= weight(have) then
  lower(me, want)
else
  local others = 0
  for name, r in pairs(replicas) do
    if name ~= id then
      others = others + weight(r.n)
      if r.ends > now and r.ends > from then from = r.ends end
    end
  end
  if known and now - born < SPAN then from = math.max(from, born + SPAN) end
  if now - born >= SETTLE and others + weight(want) <= 1.000001 then
    me.n = want
  else
    lower(me, have)
  end
end
keep(id, me)
replicas[id] = me

for i = 7, #ARGV do redis.call('ZADD', KEYS[2], now, ARGV[i]) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - RECALL - 1)
local list = {}
for name, r in pairs(replicas) do
  if not r.gone or r.ends > now then
    list[#list + 1] = name
    list[#list + 1] = tostring(now - r.beat)
    list[#list + 1] = tostring(r.ends > now and larger(r.before, r.n) or r.n)
    list[#list + 1] = r.gone and '1' or r.behind and '2' or '0'
  end
end
return {tostring(now), tostring(me.n), tostring(from), list, redis.call('ZRANGE', KEYS[2], 0, -1)}
