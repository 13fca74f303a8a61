-- KEYS[4] the record. ARGV: id, holder.
local found = redis.call('HMGET', KEYS[4], 'holder', 'reply')
if found[1] == ARGV[2] and not found[2] then
    redis.call('DEL', KEYS[4])
    forget(ARGV[1])
end
return 1
