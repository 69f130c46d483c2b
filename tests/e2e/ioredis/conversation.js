// conversation.js PORT: what an application does with ioredis: connection, points, pipelines, scan
// streams, custom commands for the ordered keyspace, errors. Ends with "ioredis: ok".
'use strict';

const assert = require('node:assert/strict');
const Redis = require('ioredis');

const port = Number(process.argv[2]);

async function points(redis) {
  assert.equal(await redis.ping(), 'PONG');
  assert.equal(await redis.set('a', '1'), 'OK');
  assert.equal(await redis.set('a', '2', 'NX'), null);
  assert.equal(await redis.get('a'), '1');
  assert.equal(await redis.incrby('a', 41), 42);
  assert.deepEqual(await redis.mget('a', 'nosuch'), ['42', null]);
  assert.equal(await redis.mset({ b: '1', c: '2' }), 'OK');
  assert.equal(await redis.del('a', 'b', 'c'), 3);
  const bytes = Buffer.from([0, 13, 10, 255]);
  await redis.set(bytes, bytes);
  assert.deepEqual(await redis.getBuffer(bytes), bytes);
  await redis.flushall();
}

async function pipelines(redis) {
  const pipeline = redis.pipeline();
  for (let i = 0; i < 1000; ++i) pipeline.set(`key:${String(i).padStart(4, '0')}`, i);
  const replies = await pipeline.exec();
  assert.ok(replies.every(([error, reply]) => error === null && reply === 'OK'));
  const concurrent = await Promise.all(Array.from({ length: 500 }, () => redis.incr('n')));
  assert.deepEqual(concurrent, Array.from({ length: 500 }, (_, i) => i + 1));
  await redis.del('n');
}

async function scans(redis) {
  const keys = [];
  for await (const chunk of redis.scanStream({ match: 'key:00*', count: 7 })) keys.push(...chunk);
  assert.deepEqual(keys, Array.from({ length: 100 }, (_, i) => `key:${String(i).padStart(4, '0')}`));
}

async function ordered(redis) {
  const range = ['KRANGE', '[key:0010', '(key:0012', 'WITHVALUES'];
  assert.deepEqual(await redis.call(...range), ['key:0010', '10', 'key:0011', '11']);
  assert.equal(await redis.call('KCOUNT', 'PREFIX', 'key:'), 1000);
  assert.equal(await redis.call('KFLOOR', 'key:00105'), 'key:0010');
  assert.equal(await redis.call('KDELRANGE', '-', '+', 'LIMIT', 10), 10);
  let [token, chunk] = await redis.call('KSCAN', '-', '+', 'COUNT', 100);
  let seen = chunk.length;
  while (token !== '0') {
    [token, chunk] = await redis.call('KSCAN', 'NEXT', token);
    seen += chunk.length;
  }
  assert.equal(seen, 990);
}

async function errors(redis) {
  await assert.rejects(redis.call('NOSUCH'), /ERR unknown command/);
  await assert.rejects(redis.call('KRANGE', 'a', 'b'), /min or max not valid string range item/);
  await redis.set('text', 'x');
  await assert.rejects(redis.incr('text'), /not an integer/);
}

async function main() {
  const redis = new Redis({ port, host: '127.0.0.1', connectionName: 'ioredis', db: 2,
                            maxRetriesPerRequest: 0 });
  redis.on('error', (error) => { throw error; });
  await redis.flushall();
  await points(redis);
  await pipelines(redis);
  await scans(redis);
  await ordered(redis);
  await errors(redis);
  assert.equal(await redis.client('GETNAME'), 'ioredis');
  assert.equal(await redis.quit(), 'OK');
  console.log('ioredis: ok');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
