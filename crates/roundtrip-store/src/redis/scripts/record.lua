-- KEYS[4] the record. ARGV: id, holder, reply, end. 1 if the claim was still there.
local id, reply, last = ARGV[1], ARGV[3], tonumber(ARGV[4])
if redis.call('HGET', KEYS[4], 'holder') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[4], 'reply', reply)
redis.call('PEXPIREAT', KEYS[4], ARGV[4])
local owner, bytes = share_of(id)
if owner then
    count(owner, 0, #reply - tonumber(bytes))
    file(id, owner, #reply, last)
end
return 1
