-- KEYS[1] the version of the layout. ARGV: the version that is known. Returns the version that is there.
local found = redis.call('GET', KEYS[1])
if found and tonumber(found) >= tonumber(ARGV[1]) then return tonumber(found) end
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
