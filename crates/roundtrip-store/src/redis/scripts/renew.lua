-- KEYS[4] and on: the records. ARGV: lease, then id and holder of each.
for at = 4, #KEYS do
    local id, holder = ARGV[at * 2 - 6], ARGV[at * 2 - 5]
    local found = redis.call('HMGET', KEYS[at], 'holder', 'reply')
    local owner, bytes = share_of(id)
    if found[1] == holder and not found[2] and owner then
        redis.call('PEXPIRE', KEYS[at], ARGV[1])
        file(id, owner, bytes, now + tonumber(ARGV[1]))
    end
end
return 1
