/**
 * What Redis does in one go: whose turn it is.
 *
 * BullMQ has no groups, and in one long list a tenant with 10,000 jobs would delay all others. So jobs wait here, in one
 * queue per tenant, and are handed to BullMQ only when a worker is about to be free, one of each tenant in turn. From
 * then on BullMQ has them: locks, takeovers, retries, results.
 *
 * All keys begin with `KEYS[1]`, which has a hash tag: in a cluster they live on one node. `i:` a job, or what was
 * said under an idempotency key; `s:` the jobs of a
 * session in order, of which only the first may run; `t:` what a tenant has waiting, by priority and age; `ring` tenants by
 * virtual time; `lim` tenants whose rate is used up, and until when; `r:` the latest starts of a tenant; `rates` the rules;
 * `q:` the job of a session whose run waits for an answer; `in` what BullMQ has and is not finished, and `off` what waits there
 * for another try; `adm` what BullMQ was not seen to have yet; `told` what was cancelled while it ran, and why; `wait` what has
 * not begun, by age;
 * `cap`, `beat` and `room` workers and how much they take. Channels: `ev:` the ends of jobs of a session; `lv:` what happens
 * in its run, for those who follow it; `w:` what a worker is told, and `ctl` what all of them are.
 *
 * Every script can be sent twice: a client that lost the answer sends it again. The time is that of Redis, so it doesn't matter
 * whose clock is wrong.
 */
const COMMON = `
local call = redis.call
local base, time = KEYS[1], call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function key(name, of) return base .. name .. (of or '') end

-- Puts a tenant into the ring. It is served in the next round, however long it was away.
local function join(tenant)
  call('ZADD', key('ring'), tonumber(call('GET', key('vt')) or '0') + 1, tenant)
end

-- Lets a job wait for its tenant's turn.
local function queueUp(id)
  local item = key('i:', id)
  local known = call('HMGET', item, 't', 'o')
  call('HSET', item, 'st', 'w')
  call('ZADD', key('t:', known[1]), known[2], id)
  if not call('ZSCORE', key('ring'), known[1]) and not call('ZSCORE', key('lim'), known[1]) then join(known[1]) end
end

-- Counts a start of a tenant and returns 0, or returns when it may start something again.
local function limited(tenant)
  local rule = call('HGET', key('rates'), tenant) or call('HGET', key('rates'), '*')
  local max, per = string.match(rule or '', '^(%d+)/(%d+)$')
  if not max then return 0 end
  local starts = key('r:', tenant)
  local before = call('LINDEX', starts, max - 1)
  if before and before + per > now then return before + per end
  call('LPUSH', starts, now)
  call('LTRIM', starts, 0, max - 1)
  call('PEXPIRE', starts, per)
  return 0
end

-- Hands out turns as long as there is room. Returns the jobs that BullMQ is to be given, and in how many milliseconds to
-- look again.
local function admit()
  for _, tenant in ipairs(call('ZRANGEBYSCORE', key('lim'), '-inf', now)) do
    call('ZREM', key('lim'), tenant)
    if call('ZCARD', key('t:', tenant)) > 0 then join(tenant) end
  end
  local room = tonumber(call('GET', key('room')) or '0') - call('ZCARD', key('in'))
  local jobs = {}
  while room > 0 do
    local first = call('ZRANGE', key('ring'), 0, 0, 'WITHSCORES')
    if #first == 0 then break end
    local tenant, vt = first[1], tonumber(first[2])
    local waiting = key('t:', tenant)
    local later = call('ZCARD', waiting) > 0 and limited(tenant) or 0
    if later > 0 then
      call('ZREM', key('ring'), tenant)
      call('ZADD', key('lim'), later, tenant)
    else
      local id = call('ZPOPMIN', waiting)[1]
      call('SET', key('vt'), vt)
      if call('ZCARD', waiting) == 0 then call('ZREM', key('ring'), tenant)
      else call('ZADD', key('ring'), vt + 1, tenant) end
      if id then
        local item = key('i:', id)
        call('HSET', item, 'st', 'a')
        call('ZADD', key('in'), now, id)
        call('ZADD', key('adm'), now, id)
        jobs[#jobs + 1] = id
        jobs[#jobs + 1] = call('HGET', item, 'd') or ''
        room = room - 1
      end
    end
  end
  local soonest = call('ZRANGE', key('lim'), 0, 0, 'WITHSCORES')
  return { jobs, soonest[2] and soonest[2] - now or '' }
end

-- The job is known for so long, and its idempotency key with it, unless that belongs to another job by now.
local function forget(id, keepMs)
  local item = key('i:', id)
  call('PEXPIRE', item, keepMs)
  local own = key('i:', call('HGET', item, 'k'))
  if call('HGET', own, 'by') == id then call('PEXPIRE', own, keepMs) end
end

-- The run of this job doesn't wait for an answer any more. Another job may have gone on with it.
local function forgetRun(id, keepMs)
  for _, one in ipairs({ id, call('HGET', key('i:', id), 'by') or '' }) do
    if call('HGET', key('i:', one), 'st') == 'f' then forget(one, keepMs) end
  end
end

-- Gives the job its idempotency key. False if another job has it.
local function take(name, id, session, tenant, agent)
  local own = key('i:', name)
  local by = call('HGET', own, 'by')
  if by and by ~= id then return false end
  call('HSET', own, 's', session, 't', tenant, 'a', agent, 'st', 'm', 'by', id)
  call('PERSIST', own)
  call('HSET', key('i:', id), 'k', name)
  return true
end

-- The job is over. The next one of its session may queue up.
local function over(id, result, keepMs)
  local item = key('i:', id)
  for _, of in ipairs({ 'in', 'off', 'adm', 'wait' }) do call('ZREM', key(of), id) end
  call('HDEL', key('told'), id)
  local known = call('HMGET', item, 's', 'st')
  if not known[1] or known[2] == 'f' then return end
  call('HSET', item, 'st', 'f', 'res', result)
  call('HDEL', item, 'd')
  if tonumber(keepMs) > 0 then forget(id, keepMs) end
  local jobs = key('s:', known[1])
  call('LREM', jobs, 1, id)
  local following = call('LINDEX', jobs, 0)
  if following and call('HGET', key('i:', following), 'st') == 'b' then queueUp(following) end
  call('PUBLISH', key('ev:', known[1]), 'end ' .. id .. ' ' .. result)
end
`;

/**
 * `id, data, session, tenant, priority, agent, of, times, key` → is it new; turns. `of`: the job whose run it goes on with.
 * `times`: how often it was sent back from the dead-letter list. `key`: the id that stands for its idempotency key, or ''.
 */
export const FILE = `${COMMON}
local id, session = ARGV[1], ARGV[3]
local item = key('i:', id)
local known = call('HMGET', item, 'st', 'g')
local state, again = known[1], tonumber(ARGV[8]) > tonumber(known[2] or '0')
if state and state ~= 'd' and not again then return { 0, admit() } end
if again then
  call('DEL', item)
  call('HDEL', key('told'), id)
  for _, of in ipairs({ 'in', 'off', 'adm' }) do call('ZREM', key(of), id) end
end
if ARGV[9] ~= '' and not take(ARGV[9], id, session, ARGV[4], ARGV[6]) and not again then return { 0, admit() } end
local order = tonumber(ARGV[5]) * 8589934592 + call('INCR', key('n'))
call('HSET', item, 'd', ARGV[2], 's', session, 't', ARGV[4], 'o', string.format('%.0f', order), 'a', ARGV[6], 'st', 'b',
  'g', ARGV[8])
if ARGV[7] ~= '' then call('HSET', item, 'of', ARGV[7]) end
if ARGV[7] ~= '' and call('EXISTS', key('i:', ARGV[7])) == 1 then
  local asked = call('HGET', key('i:', ARGV[7]), 'by')
  call('HSET', key('i:', ARGV[7]), 'by', id)
  -- Nobody looks for it any more: it has asked as well, and this one brings the answer.
  if asked and asked ~= id and call('HGET', key('i:', asked), 'st') == 'f' then call('DEL', key('i:', asked)) end
end
call('ZADD', key('wait'), now, id)
-- The end of one that is sent back may not have been recorded yet: then it still has its place in the session.
if state == 'a' or call('RPUSH', key('s:', session), id) == 1 then queueUp(id) end
return { 1, admit() }`;

/** `id, session, tenant, agent, key`: BullMQ has it for later → is it new. */
export const DELAY = `${COMMON}
local item = key('i:', ARGV[1])
if call('EXISTS', item) == 1 then return 0 end
if ARGV[5] ~= '' and not take(ARGV[5], ARGV[1], ARGV[2], ARGV[3], ARGV[4]) then return 0 end
call('HSET', item, 's', ARGV[2], 't', ARGV[3], 'a', ARGV[4], 'st', 'd')
return 1`;

/**
 * `id, takeovers, worker` → 'gone'; 'over' and its result; or 'go', why it was cancelled or '', and how many follow the
 * session in other processes.
 */
export const START = `${COMMON}
local id = ARGV[1]
local item = key('i:', id)
local known = call('HMGET', item, 'st', 'res', 'c', 'tk', 's')
call('ZREM', key('adm'), id)
call('ZREM', key('off'), id)
if not known[1] then
  call('ZREM', key('in'), id)
  call('HDEL', key('told'), id)
  return { 'gone', '' }
end
if known[1] == 'f' then return { 'over', known[2] } end
call('ZREM', key('wait'), id)
call('ZADD', key('in'), now, id)
call('HSET', item, 'w', ARGV[3])
local takeovers = tonumber(ARGV[2])
if takeovers > tonumber(known[4] or '0') then
  call('HSET', item, 'tk', takeovers)
  call('HINCRBY', key('stats'), 'takeovers', 1)
end
return { 'go', known[3] or '', call('PUBLISH', key('lv:', known[5]), '') }`;

/** `session`: somebody follows it now. Its worker is told, if it has one; if not, the worker will see it at the start. */
export const LISTEN = `${COMMON}
local first = call('LINDEX', key('s:', ARGV[1]), 0)
local worker = first and call('HGET', key('i:', first), 'w')
return worker and call('PUBLISH', key('w:', worker), ARGV[1]) or 0`;

/**
 * `id, result, status, keepMs, of, times, run` → may somebody have spoken to its session whom no run has heard; turns; the job
 * whose run waited for an answer before, if that was another run, or ''. `run`: the job whose run it worked on.
 */
export const FINISH = `${COMMON}
local id = ARGV[1]
local item = key('i:', id)
-- It was sent back meanwhile.
if (call('HGET', item, 'g') or '0') ~= ARGV[6] then return { 0, admit() } end
local known = call('HMGET', item, 'sp', 'st', 's')
local spoken, asks, keepMs, run = known[1], ARGV[3] == 'suspended', ARGV[4], ARGV[7]
if known[2] ~= 'f' then call('HINCRBY', key('stats'), ARGV[3], 1) end
-- A run may wait for weeks. Its questions name the job that began it, and that one knows who went on with it last.
local waits = asks and (run == id or call('HGET', key('i:', ARGV[5]), 'by') == id)
over(id, ARGV[2], waits and '0' or keepMs)
local function done(before) return { spoken and 1 or 0, admit(), before } end
if not known[3] then return done('') end
if not asks and ARGV[5] ~= '' then forgetRun(ARGV[5], keepMs) end
local waiting = key('q:', known[3])
local before = call('GET', waiting) or ''
-- What was said to a run that then waited is heard when it continues, unless it ends first.
for _, one in ipairs({ ARGV[5], before }) do spoken = spoken or call('HGET', key('i:', one), 'sp') end
if asks then
  if spoken and call('EXISTS', key('i:', run)) == 1 then
    call('HSET', key('i:', run), 'sp', 1)
    spoken = false
  end
  -- Its end was recorded before, and the session may have gone on since.
  if known[2] == 'f' then return done('') end
  -- A session has one open run.
  if before ~= '' and before ~= run then forgetRun(before, keepMs) end
  call('SET', waiting, run)
  return done('')
end
for _, one in ipairs({ id, before }) do
  if spoken and call('EXISTS', key('i:', one)) == 1 then call('HSET', key('i:', one), 'sp', 1) end
end
if before ~= run then return done(before) end
call('DEL', waiting)
forgetRun(run, keepMs)
return done('')`;

/** `session, job, keepMs`: its run doesn't wait for an answer any more. */
export const WAITED = `${COMMON}
local waiting = key('q:', ARGV[1])
if call('GET', waiting) == ARGV[2] then call('DEL', waiting) end
forgetRun(ARGV[2], ARGV[3])
return 0`;

/** `id`: it waits for another try, and leaves its place to others → 0; turns. */
export const RELEASE = `${COMMON}
call('ZREM', key('in'), ARGV[1])
call('ZADD', key('off'), now, ARGV[1])
return { 0, admit() }`;

/** `id, reason, result, keepMs` → 'unknown', 'over', 'removed' or 'told'; the job that goes on with its run; turns. */
export const CANCEL = `${COMMON}
local id = ARGV[1]
local item = key('i:', id)
local known = call('HMGET', item, 'st', 'by', 't')
if not known[1] then return { 'unknown', '', { {}, '' } } end
if known[1] == 'f' then return { 'over', known[2] or '', { {}, '' } } end
call('HSET', item, 'c', ARGV[2])
if known[1] == 'a' then
  call('HSET', key('told'), id, ARGV[2])
  call('PUBLISH', key('ctl'), cjson.encode({ cancel = id, reason = ARGV[2] }))
  return { 'told', '', { {}, '' } }
end
local waiting = key('t:', known[3])
call('ZREM', waiting, id)
if call('ZCARD', waiting) == 0 then
  call('ZREM', key('ring'), known[3])
  call('ZREM', key('lim'), known[3])
end
call('HINCRBY', key('stats'), 'aborted', 1)
over(id, ARGV[3], ARGV[4])
return { 'removed', '', admit() }`;

/**
 * `session, id, tenant, agent, holdMs` → the job whose run is under way, and at whose end somebody looks for what was said; ''
 * if there is none, or if `id`, which stands for an idempotency key, is known. Otherwise `id` is reserved for so long.
 */
export const SPEAK = `${COMMON}
local first, id = call('LINDEX', key('s:', ARGV[1]), 0), ARGV[2]
if not first or call('HGET', key('i:', first), 'st') ~= 'a' then return '' end
if id ~= '' then
  local item = key('i:', id)
  if call('EXISTS', item) == 1 then return '' end
  call('HSET', item, 's', ARGV[1], 't', ARGV[3], 'a', ARGV[4], 'st', 's', 'by', first)
  call('PEXPIRE', item, ARGV[5])
end
call('HSET', key('i:', first), 'sp', 1)
return call('HGET', key('i:', first), 'of') or first`;

/** `id, job, keepMs, session, tenant, agent`: it has been said, reserved or not any more, and the job answers. */
export const SAID = `${COMMON}
local item = key('i:', ARGV[1])
call('HSET', item, 's', ARGV[4], 't', ARGV[5], 'a', ARGV[6], 'st', 'm', 'by', ARGV[2])
return call('PEXPIRE', item, ARGV[3])`;

/** `tenant, rule`: the rate of a tenant, '' for none → 0; turns, by the new rates. */
export const LIMIT = `${COMMON}
if ARGV[2] == '' then call('HDEL', key('rates'), ARGV[1]) else call('HSET', key('rates'), ARGV[1], ARGV[2]) end
for _, tenant in ipairs(call('ZRANGE', key('lim'), 0, -1)) do call('ZADD', key('lim'), 0, tenant) end
return { 0, admit() }`;

/** `worker, capacity, deadAfterMs`: it is there; capacity -1: it leaves → jobs that were cancelled, and why; turns. */
export const BEAT = `${COMMON}
local function leave(worker)
  call('DECRBY', key('room'), call('HGET', key('cap'), worker) or 0)
  call('HDEL', key('cap'), worker)
  call('ZREM', key('beat'), worker)
end
local worker, capacity = ARGV[1], tonumber(ARGV[2])
local known = call('HGET', key('cap'), worker)
if capacity < 0 then
  if known then leave(worker) end
else
  call('ZADD', key('beat'), now, worker)
  if not known then
    call('INCRBY', key('room'), capacity)
    call('HSET', key('cap'), worker, capacity)
  end
end
for _, dead in ipairs(call('ZRANGEBYSCORE', key('beat'), '-inf', now - ARGV[3])) do leave(dead) end
return { call('HGETALL', key('told')), admit() }`;

/** `olderMs, count` → jobs that BullMQ should have by now and may not, with their data; those it has had for long. */
export const SWEEP = `${COMMON}
local lost, long = {}, {}
for _, id in ipairs(call('ZRANGEBYSCORE', key('adm'), '-inf', now - ARGV[1], 'LIMIT', 0, ARGV[2])) do
  call('ZADD', key('adm'), now, id)
  lost[#lost + 1] = id
  lost[#lost + 1] = call('HGET', key('i:', id), 'd') or ''
end
-- There may be many of those that wait for another try.
for of, times in pairs({ ['in'] = 1, off = 12 }) do
  for _, id in ipairs(call('ZRANGEBYSCORE', key(of), '-inf', now - times * ARGV[1], 'LIMIT', 0, ARGV[2])) do
    call('ZADD', key(of), now, id)
    if not call('ZSCORE', key('adm'), id) then long[#long + 1] = id end
  end
end
return { lost, long }`;

/** → waiting, in flight, tenants that wait, capacity, workers, how long the oldest has waited, waiting for another try, statistics. */
export const LOOK = `${COMMON}
local oldest = call('ZRANGE', key('wait'), 0, 0, 'WITHSCORES')[2]
return { call('ZCARD', key('wait')), call('ZCARD', key('in')), call('ZCARD', key('ring')) + call('ZCARD', key('lim')),
  call('GET', key('room')) or '0', call('ZCARD', key('beat')), oldest and now - oldest or 0, call('ZCARD', key('off')),
  call('HGETALL', key('stats')) }`;
