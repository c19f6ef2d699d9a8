// Parts of the library that this program supplies.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';

import { EventType } from '@a3s-lab/code';
import { ALL, Place, collect, leavesNothing, until } from './place.mjs';

leavesNothing();

const b64 = (text) => Buffer.from(text).toString('base64');

test('a slash command', async () => {
  const place = new Place();
  const session = await place.session('say x\nend', { sessionId: 'mine' });
  let seen;
  session.registerCommand('where', 'Says where.', async (args, context) => { seen = context; return `here, ${args}`; });
  session.registerCommand('fail', 'Fails.', () => { throw new TypeError('no way'); });
  assert.equal((await session.send('/where now?')).text, 'here, now?');
  assert.deepEqual([seen.sessionId, seen.workspace, Array.isArray(seen.toolNames), typeof seen.historyLen], ['mine', place.workspace, true, 'number']);
  assert.deepEqual(session.listCommands().find((c) => c.name.replace('/', '') === 'where').description, 'Says where.');
  assert.match((await session.send('/fail')).text, /no way/);
  assert.throws(() => session.registerCommand('x', 'y', 5), TypeError);
  assert.throws(() => session.registerCommand('where', 'again', () => ''), { code: 'ALREADY_EXISTS' });
  assert.deepEqual([session.unregisterExtension('command', 'where'), session.unregisterExtension('command', 'where')], [true, false]);
});

test('a model', async () => {
  const place = new Place();
  place.file('a.txt', 'hello\n');
  const agent = await place.agent('say x\nend');
  const asked = [];
  agent.registerExtension('model', { name: 'mine' }, {
    stream: async ({ messages, tools }, context) => {
      asked.push([messages.map((m) => m.role), tools.some((t) => t.name === 'read'), context.name]);
      if (asked.length === 1) return { tool_calls: [{ name: 'read', arguments: { file_path: 'a.txt' } }] };
      if (asked.length === 3) throw Object.assign(new Error('no quota'), { name: 'OutOfQuota', retryable: false });
      for (const word of ['It ', 'says ', 'hello.']) context.chunk({ text: word });
      return { usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } };
    },
  });
  const session = await agent.sessionAsync(place.workspace, { model: 'host/mine', circuitBreakerThreshold: 1, permissionPolicy: ALL });
  const events = await collect(await session.stream('What is in a.txt?'));
  assert.equal(events.at(-1).error, undefined);
  assert.deepEqual([events.at(-1).text, events.at(-1).totalTokens, events.find((e) => e.type === EventType.TOOL_END)?.toolOutput], ['It says hello.', 7, '     1\thello\n']);
  assert.deepEqual(asked, [[['user'], true, 'mine'], [['user', 'assistant', 'tool'], true, 'mine']]);
  await assert.rejects(session.send('again'), { code: 'LLM_ERROR', message: /no quota/, retryable: false });
});

test('a model is told of a cancel', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  let signal;
  agent.registerExtension('model', { name: 'slow' }, { stream: (_, context) => { signal = context.signal; context.chunk({ text: 'begun' }); return new Promise(() => {}); } });
  const session = await agent.sessionAsync(place.workspace, { model: 'host/slow' });
  const events = [];
  for await (const event of await session.stream('go')) {
    events.push(event.type);
    if (event.type === EventType.TEXT_DELTA) session.cancel();
  }
  assert.equal(events.at(-1), 'error');
  await until(() => signal.aborted, 'the model was not told');
});

test('a permission checker', async () => {
  const place = new Place();
  const session = await place.session('call write {"file_path": "a", "content": "x"}\nend\ncall write {"file_path": "b", "content": "x"}\nend\nsay done\nend');
  session.registerExtension('permission', { name: 'judge' }, {
    check: ({ tool, args, effects }) => (effects.write && args.file_path === 'a' ? { decision: 'allow' } : { decision: 'deny', reason: `${tool} of ${args.file_path}` }),
    expose: async () => ({ visible: true }),
  });
  const events = await collect(await session.stream('go'));
  assert.deepEqual(events.filter((e) => e.type === EventType.TOOL_END).map((e) => e.exitCode === 0), [true, false]);
  assert.match(events.find((e) => e.type === EventType.PERMISSION_DENIED).payload.reason, /write of b/);
});

test('a checker that throws denies', async () => {
  const session = await new Place().session('call ls {}\nend\nsay done\nend');
  session.registerExtension('permission', { name: 'judge', check_only: true }, { check: () => { throw new Error('broken'); } });
  assert.ok((await collect(await session.stream('go'))).some((e) => e.type === EventType.PERMISSION_DENIED));
});

test('a context provider', async () => {
  const session = await new Place().session('expect go\nsay done\nend');
  const asked = [];
  session.registerExtension('context', { name: 'issues' }, { query: (query) => { asked.push(query); return { items: [{ id: '1', content: 'the answer is 42' }] }; } });
  const events = await collect(await session.stream('go'));
  assert.equal(asked.length, 1);
  assert.equal(events.find((e) => e.type === EventType.CONTEXT_RESOLVED).payload.total_items, 1);
});

test('a workspace', async () => {
  const place = new Place();
  const agent = await place.agent('call write {"file_path": "notes/b.txt", "content": "new"}\nend\nsay done\nend');
  const files = new Map([['a.txt', 'hello\n']]);
  const missing = (at) => Object.assign(new Error(`there is no ${at}`), { kind: 'not_found' });
  const entry = (at) => {
    if (files.has(at)) return { type: 'file', size: Buffer.byteLength(files.get(at)) };
    if (at === '.' || [...files.keys()].some((f) => f.startsWith(`${at}/`))) return { type: 'dir' };
    throw missing(at);
  };
  agent.registerExtension('workspace', { name: 'notebook' }, {
    stat: ({ path: at }) => entry(at),
    list: ({ path: at }) => {
      const below = [...files.keys()].map((f) => path.posix.relative(at, f)).filter((f) => !f.startsWith('..')).map((f) => f.split('/')[0]);
      return { entries: [...new Set(below)].map((name) => ({ name, ...entry(path.posix.join(at, name)) })) };
    },
    read: ({ path: at }) => {
      if (!files.has(at)) throw missing(at);
      return { data: b64(files.get(at)), version: files.get(at) };
    },
    write: ({ path: at, data }) => {
      files.set(at, Buffer.from(data, 'base64').toString());
      return { version: files.get(at) };
    },
    remove: ({ path: at }) => { files.delete(at); },
  });
  assert.throws(() => agent.session('.', { workspaceBackend: { kind: 'host', name: 'notebook' } }), { code: 'UNSUPPORTED_OPERATION' });
  const session = await agent.sessionAsync('.', { workspaceBackend: { kind: 'host', name: 'notebook' }, permissionPolicy: ALL });
  assert.equal(await session.readFile('a.txt'), '     1\thello\n');
  await assert.rejects(session.readFile('missing'), { code: 'TOOL_ERROR', details: { exit_code: 1, error_kind: { type: 'not_found', path: 'missing' } } });
  await session.send('go');
  assert.equal(files.get('notes/b.txt'), 'new');
  assert.match(String(await session.ls('notes')), /b\.txt/);
  assert.ok(!session.toolNames().includes('bash'));
});

test('log lines', async () => {
  const place = new Place();
  const agent = await place.agent('call read {"file_path": "a.txt"}\nend\nsay x\nend');
  const lines = [];
  agent.registerExtension('log', { name: 'lines', level: 'debug' }, { write: (line) => { lines.push(line); } });
  const session = await agent.sessionAsync(place.workspace, { workspaceBackend: undefined });
  await session.send('go');
  assert.ok(lines.every((l) => typeof l.message === 'string'));
});

test('what cannot be supplied', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const nothing = { run: () => {} };
  assert.throws(() => agent.registerExtension('hook', { name: 'x' }, nothing), { code: 'UNSUPPORTED_OPERATION' });
  assert.throws(() => agent.registerExtension('model', { name: 'x', models: 3 }, nothing), RangeError);
  assert.throws(() => agent.registerExtension('model', { name: 'not a name' }, nothing), RangeError);
  for (const args of [[5, {}, nothing], ['model', null, nothing], ['model', { name: 'x' }, null], ['model', { name: 'x' }, {}], ['model', { name: 'x' }, { stream: 5 }]]) {
    assert.throws(() => agent.registerExtension(...args), (err) => err instanceof TypeError && err.code === 'INVALID_REQUEST');
  }
  const session = await agent.sessionAsync(place.workspace);
  assert.throws(() => session.registerExtension('model', { name: 'x' }, nothing), { code: 'INVALID_REQUEST', message: /with the agent/ });
  agent.registerExtension('context', { name: 'odd' }, { other: () => {} });
  assert.equal((await session.send('go')).text, 'x'); // what has no such operation is left out
});
