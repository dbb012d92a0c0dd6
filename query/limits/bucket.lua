-- KEYS[1]: the hash of one pool, what a budget may use of one limit.
-- ARGV: replica, its number of request, the limit, the width of a bucket in ms (0: one bucket that stays), how long one counts after
-- its end, what it holds unspent, what it wants, 1 if it believes to be in the pool, 1 if it leaves, the share that it may use
-- outside of the pool, what it admitted as bucket:count, the others as id:share:state (f heard of lately, s silent, l left, with
-- the ms since when that is known), what it knows that replicas used which
-- are no more, when the pool ends in ms from now.
-- Returns: the time in ms; 1 if it has left; what is granted, less than nothing if it must give back; what the others used, what they
-- hold or may use, whether there are none; what replicas that are no more used; the others' use as second:count.
-- All that was admitted within a window, is held, or may be used by those who were not asked yet, is never more than the limit.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, seq, limit, width, span = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local hold, want, inside, leaves, share = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9] == '1', tonumber(ARGV[10])
local report, left, ends = ARGV[11], tonumber(ARGV[13]), tonumber(ARGV[14])
local RECOVER = 64000

local function counted(bucket) return width == 0 or bucket * width + width + span > now end

local others, count, alone = {}, 1, true
for name, part, state, since in string.gmatch(ARGV[12], '(%S+):(%d+):(%a)(%d*)') do
  others[name] = {share = tonumber(part), silent = state ~= 'f', left = state == 'l', since = tonumber(since)}
  if state ~= 'l' then count = count + 1 end
  alone = false
end

local fields = redis.call('HGETALL', KEYS[1])
local lost, closed, gone, mine, theirs, reserved, elsewhere, used, seconds = 0, 0, 0, nil, 0, 0, 0, 0, {}
local there = {}
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  if name == '.lost' then
    lost = tonumber(value)
  elseif name == '.closed' then
    closed = tonumber(value)
  elseif name == '.gone' then
    gone = tonumber(value)
  elseif name == id then
    mine = tonumber(string.match(value, '^%d+'))
  else
    local at, held, rest = string.match(value, '^%d+ (%d+) (%d+) ?(.*)$')
    at, held = tonumber(at), tonumber(held)
    there[name] = true
    local sum = 0
    for bucket, n in string.gmatch(rest, '(%d+):(%d+)') do
      bucket, n = tonumber(bucket), tonumber(n)
      if counted(bucket) then
        sum = sum + n
        if width > 0 then
          local second = math.ceil((bucket + 1) * width / 1000)
          seconds[second] = (seconds[second] or 0) + n
        end
      end
    end
    used = used + sum
    local other = others[name]
    if other and other.silent and not other.left then
      reserved = reserved + math.max(held, other.share)
    elseif other then
      reserved = reserved + held
      if not other.silent then elsewhere = elsewhere + held end
    else
      -- It ended without a word: what it held may have been spent.
      if now - at < RECOVER then reserved = reserved + held end
      theirs = theirs + sum
      if width > 0 and sum == 0 and now - at >= RECOVER then redis.call('HDEL', KEYS[1], name) end
    end
  end
end
if mine and mine >= seq then return {tostring(now)} end
if inside and not mine then
  -- The store was emptied: what the others used, only they can tell.
  lost = now
  redis.call('HSET', KEYS[1], '.lost', now)
end
local recovers = lost > 0 and now - lost < RECOVER
for name, other in pairs(others) do
  if not there[name] then
    if recovers and other.left then
      -- What it used before it ended is lost, and nobody will tell.
      closed = math.max(closed, now - other.since + RECOVER)
      redis.call('HSET', KEYS[1], '.closed', closed)
    elseif recovers then
      reserved = reserved + limit
    else
      reserved = reserved + other.share
    end
    if not other.silent and (recovers or other.share > 0) then elsewhere = elsewhere + math.max(1, other.share) end
  end
end
if width > 0 and now < closed then reserved = reserved + limit end
if recovers and left > gone + theirs then
  gone = left - theirs
  redis.call('HSET', KEYS[1], '.gone', gone)
end
used = used + gone

local own = 0
for bucket, n in string.gmatch(report, '(%d+):(%d+)') do
  if counted(tonumber(bucket)) then own = own + tonumber(n) end
end
local free = limit - used - own - reserved - hold
if leaves and not recovers and own <= share and limit - used - reserved >= share then
  redis.call('HDEL', KEYS[1], id)
  return {tostring(now), '1'}
end
-- Of a limit that slides, what others used could only be learned here.
local grant, exclusive = 0, alone and reserved == 0 and (width == 0 or used == 0)
if exclusive then
  grant = math.max(0, free)
elseif free < 0 then
  grant = math.max(free, -hold)
elseif want > 0 and free > 0 then
  grant = math.min(want, math.max(1, math.floor(free / (2 * count))))
end
local held = hold + grant
-- One that is alone decides by itself, so that all is reserved for it.
if exclusive then held = limit end
redis.call('HSET', KEYS[1], id, string.format('%.0f %.0f %d %s', seq, now, held, report))
redis.call('PEXPIRE', KEYS[1], ends)
local list = {}
for second, n in pairs(seconds) do list[#list + 1] = second .. ':' .. n end
return {tostring(now), '0', tostring(grant), tostring(used), tostring(elsewhere), exclusive and '1' or '0', tostring(gone + theirs), table.concat(list, ' ')}
