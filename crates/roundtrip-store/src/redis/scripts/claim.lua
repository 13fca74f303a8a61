-- KEYS[4] the record. ARGV: id, call, owner, holder, lease, most records, most bytes.
-- 0 claimed, 1 another call, 2 running, 3 done with the reply, 4 full.
local id, call, owner, holder = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local found = redis.call('HMGET', KEYS[4], 'call', 'holder', 'reply')
if found[2] then
    if found[1] ~= call then return { 1, '' } end
    if found[3] then return { 3, found[3] } end
    if found[2] ~= holder then return { 2, '' } end
    -- The answer of the attempt before was lost, or came too late.
    redis.call('PEXPIRE', KEYS[4], ARGV[5])
    file(id, owner, 0, now + tonumber(ARGV[5]))
    return { 0, '' }
end
sweep(16)
forget(id)
-- One caller has at most half of what the others leave.
local function has_room(unit, most)
    local own, all = amount(unit .. owner), amount(unit .. 'all')
    return own < math.ceil(math.max(most - (all - own), 0) / 2)
end
if not (has_room('records:', tonumber(ARGV[6])) and has_room('bytes:', tonumber(ARGV[7]))) then
    return { 4, '' }
end
redis.call('HSET', KEYS[4], 'call', call, 'holder', holder)
redis.call('PEXPIRE', KEYS[4], ARGV[5])
count(owner, 1, 0)
file(id, owner, 0, now + tonumber(ARGV[5]))
return { 0, '' }
