-- KEYS[1] ids of records by their ends, KEYS[2] counts of callers, KEYS[3] the share of each record: its owner and bytes.
-- Records expire by themselves. Their shares are removed by later scripts, a few at a time.
local ends, counts, shares = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function amount(field)
    return tonumber(redis.call('HGET', counts, field) or 0)
end

local function count(owner, records, bytes)
    for _, whose in ipairs({ owner, 'all' }) do
        if redis.call('HINCRBY', counts, 'records:' .. whose, records) <= 0 then
            redis.call('HDEL', counts, 'records:' .. whose, 'bytes:' .. whose)
        else
            redis.call('HINCRBY', counts, 'bytes:' .. whose, bytes)
        end
    end
end

local function share_of(id)
    local share = redis.call('HGET', shares, id)
    if share then
        return string.match(share, '^(%x+):(%d+)$')
    end
end

-- Sets the end and the share of a record. What is kept of all records ends after the last of them.
local function file(id, owner, bytes, last)
    redis.call('ZADD', ends, last, id)
    redis.call('HSET', shares, id, owner .. ':' .. bytes)
    for _, key in ipairs({ ends, counts, shares }) do
        if redis.call('PTTL', key) < last - now then
            redis.call('PEXPIREAT', key, string.format('%.0f', last + 60000))
        end
    end
end

local function forget(id)
    local owner, bytes = share_of(id)
    if owner then
        count(owner, -1, 0 - tonumber(bytes))
        redis.call('HDEL', shares, id)
        redis.call('ZREM', ends, id)
    end
end

local function sweep(most)
    local over = redis.call('ZRANGEBYSCORE', ends, '-inf', string.format('(%.0f', now), 'LIMIT', 0, most)
    for _, id in ipairs(over) do
        forget(id)
    end
    return #over
end
