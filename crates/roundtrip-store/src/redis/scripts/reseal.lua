-- KEYS[1] the record. ARGV: old reply, new reply.
if redis.call('HGET', KEYS[1], 'reply') == ARGV[1] then
    redis.call('HSET', KEYS[1], 'reply', ARGV[2])
end
return 1
