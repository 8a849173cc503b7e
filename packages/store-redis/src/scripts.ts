/** What the server does in one go. A script runs to its end before any other command. */

/**
 * All keys begin with `KEYS[1]`, which has a hash tag: in a cluster they are on one node, where one script can reach
 * them. `j:` journal, a list of entries; `s:` what `list` shows, and the newest snapshot; `i:` inbox, a list; `c:`
 * sessions of its sub-agents, a set; `all` and `t:` sessions by time. The number of an item follows from its place:
 * the last one has the number `posted`.
 */
const NAMES = `
local base, id = KEYS[1], ARGV[1]
local journal, info, inbox = base .. 'j:' .. id, base .. 's:' .. id, base .. 'i:' .. id
`;

/** Number of the first item in the inbox, and the items. */
const ITEMS = `
local items = redis.call('LRANGE', inbox, 0, -1)
local first = tonumber(redis.call('HGET', info, 'posted') or 0) - #items + 1
`;

/**
 * `id, expectedSeq, createdAt, updatedAt, started, tenant?, source of a fork?, parent?, seq of a snapshot or '', its
 * state, entries…` → the head before it, the number of the first inbox item, and the items. The caller compares the head
 * with what it expected. The journal is written last: if anything before it fails, the session is as long as it was.
 * Only the snapshot comes after it, because it may be lost but must never be of entries that don't exist.
 */
export const APPEND = `${NAMES}
local head = redis.call('LLEN', journal)
if head ~= tonumber(ARGV[2]) then return { head, 0, {} } end
if head == 0 then
  redis.call('HSET', info, 'created', ARGV[3])
  if ARGV[8] ~= '' then redis.call('SADD', base .. 'c:' .. string.sub(ARGV[8], 2), id) end
end
redis.call('HSET', info, 'updated', ARGV[4])
if ARGV[5] == '1' and redis.call('HSETNX', info, 'started', '1') == 1 and ARGV[6] ~= '' then
  redis.call('HSET', info, 'tenant', string.sub(ARGV[6], 2))
end
if ARGV[7] ~= '' then
  local posted = redis.call('HGET', base .. 's:' .. string.sub(ARGV[7], 2), 'posted')
  if posted then redis.call('HINCRBY', info, 'posted', posted) end
end
redis.call('ZADD', base .. 'all', ARGV[4], id)
local tenant = redis.call('HGET', info, 'tenant')
if tenant then redis.call('ZADD', base .. 't:' .. tenant, ARGV[4], id) end
for i = 11, #ARGV, 1000 do
  redis.call('RPUSH', journal, unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
if ARGV[9] ~= '' and tonumber(ARGV[9]) <= head + #ARGV - 10 then
  redis.pcall('HSET', info, 'snapshot', ARGV[9], 'state', ARGV[10])
end
${ITEMS}
return { head, first, items }`;

/** `id, fromSeq` → the entries. */
export const READ = `${NAMES}
return redis.call('LRANGE', journal, ARGV[2] - 1, -1)`;

/**
 * `id` → seq of the newest snapshot or 0, its state, the entries after it, the number of the first inbox item, and the
 * items. A snapshot ahead of the entries is ignored.
 */
export const TAIL = `${NAMES}
local known = redis.call('HMGET', info, 'snapshot', 'state')
local seq = tonumber(known[1] or 0)
if seq > redis.call('LLEN', journal) then seq = 0 end
${ITEMS}
return { seq, known[2] or '', redis.call('LRANGE', journal, seq, -1), first, items }`;

/** `id` → the head. */
export const HEAD = `${NAMES}
return redis.call('LLEN', journal)`;

/**
 * `tenant?, since, time of the cursor or '', limit` → id, seq, createdAt, updatedAt, tenant of each session. Sessions of
 * the cursor's own time are all there; the caller knows which of them come after it.
 */
export const LIST = `
local base = KEYS[1]
local index = ARGV[1] == '' and base .. 'all' or base .. 't:' .. string.sub(ARGV[1], 2)
local since, from, ids = ARGV[2], '+inf', {}
if ARGV[3] ~= '' then
  from = '(' .. ARGV[3]
  if since == '-inf' or tonumber(ARGV[3]) >= tonumber(since) then ids = redis.call('ZREVRANGEBYSCORE', index, ARGV[3], ARGV[3]) end
end
for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', index, from, since, 'LIMIT', 0, ARGV[4])) do ids[#ids + 1] = id end
local found = {}
for _, id in ipairs(ids) do
  local known = redis.call('HMGET', base .. 's:' .. id, 'created', 'updated', 'tenant')
  found[#found + 1] = { id, redis.call('LLEN', base .. 'j:' .. id), known[1], known[2], known[3] }
end
return found`;

/** `id`; also deletes the sessions of its sub-agents, and of theirs. */
export const DELETE = `
local base, ids = KEYS[1], { ARGV[1] }
local at = 1
while at <= #ids do
  local id = ids[at]
  local journal, info, inbox, children = base .. 'j:' .. id, base .. 's:' .. id, base .. 'i:' .. id, base .. 'c:' .. id
  for _, child in ipairs(redis.call('SMEMBERS', children)) do ids[#ids + 1] = child end
  local tenant = redis.call('HGET', info, 'tenant')
  if tenant then redis.call('ZREM', base .. 't:' .. tenant, id) end
  redis.call('ZREM', base .. 'all', id)
  redis.call('DEL', journal, info, inbox, children)
  at = at + 1
end
return #ids`;

/** `id, item` → its number. */
export const POST = `${NAMES}
redis.call('RPUSH', inbox, ARGV[2])
return redis.call('HINCRBY', info, 'posted', 1)`;

/** `id, after` → number of the first item that is left, and the items. */
export const TAKE = `${NAMES}
local oldest = tonumber(redis.call('HGET', info, 'posted') or 0) - redis.call('LLEN', inbox) + 1
local after = tonumber(ARGV[2])
if after >= oldest then redis.call('LTRIM', inbox, after - oldest + 1, -1) end
${ITEMS}
return { first, items }`;

/** Stands in the list for an item that was taken before one in front of it. */
export const FORGOTTEN = '0';

/** `id, cursor, …waits`: overwrites the items up to the cursor, except those that wait. */
export const FORGET = `${NAMES}
local count = redis.call('LLEN', inbox)
local first = tonumber(redis.call('HGET', info, 'posted') or 0) - count + 1
local waits = {}
for i = 3, #ARGV do waits[tonumber(ARGV[i])] = true end
for n = first, math.min(tonumber(ARGV[2]), first + count - 1) do
  if not waits[n] then redis.call('LSET', inbox, n - first, '${FORGOTTEN}') end
end
return 0`;
