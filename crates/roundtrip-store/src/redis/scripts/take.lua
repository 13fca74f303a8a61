-- KEYS[1] the moment at which a bucket is full again. ARGV[1] the time that a request takes, ARGV[2] the time that a full bucket is
-- worth; all in microseconds. Returns the time to wait, 0 if the request is let through.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + interval
-- Times since 1970 are exact to a quarter of a microsecond.
if full_at - now > room + 1 then
    return math.ceil(full_at - now - room)
end
local lasts = math.max(math.ceil((full_at - now) / 1000), 1)
redis.call('SET', KEYS[1], string.format('%.3f', full_at), 'PX', string.format('%.0f', lasts))
return 0
