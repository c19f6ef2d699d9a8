// Parts of this program that throw, hang, answer with garbage or with far too much: for each kind
// the outcome that the library documents, and a session that works afterwards.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Agent, EventType } from '@a3s-lab/code';
import { ALL, Place, collect, gc, leavesNothing } from './place.mjs';

leavesNothing();

const BIG = 50 << 20;
const DEADLINE = 100;
const failing = (code) => (s) => assert.rejects(s.send('go'), { code });
const events = async (s) => collect(await s.stream('go'));
const stats = { type: 'file', size: 1 };

/** A kind: its good handlers, which of them goes wrong, how it is asked, and what must come of it. */
const KINDS = {
  tool: {
    good: { call: () => ({ output: 'fine' }) }, spec: { name: 'it' }, op: 'call', options: { permissionPolicy: ALL },
    ask: async (s) => { assert.notEqual((await s.tool('it', {})).exitCode, 0); },
    asked: async (s) => { assert.equal((await s.tool('it', {})).output, 'fine'); },
    big: { output: 'x'.repeat(BIG) }, bigOutcome: async (s) => { assert.ok((await s.tool('it', {})).output.length < BIG); },
  },
  model: {
    good: { stream: () => ({ text: 'fine' }) }, spec: { name: 'it' }, op: 'stream', options: { model: 'host/it', circuitBreakerThreshold: 1 },
    ask: failing('LLM_ERROR'), asked: async (s) => { assert.equal((await s.send('go')).text, 'fine'); },
    big: { text: 'x'.repeat(BIG) }, bigOutcome: (s) => s.send('go').catch((err) => assert.equal(err.code, 'LLM_ERROR')),
  },
  permission: {
    good: { check: () => ({ decision: 'allow' }) }, spec: { name: 'it', check_only: true }, op: 'check', script: 'call ls {}\nend\nsay done\nend\n',
    ask: async (s) => { assert.ok((await events(s)).some((e) => e.type === EventType.PERMISSION_DENIED)); },
    asked: async (s) => { assert.ok(!(await events(s)).some((e) => e.type === EventType.PERMISSION_DENIED)); },
    big: { decision: 'x'.repeat(BIG) },
  },
  context: {
    good: { query: () => ({ items: [{ id: '1', content: 'known' }] }) }, spec: { name: 'it' }, op: 'query',
    ask: async (s) => { assert.equal((await s.send('go')).text, 'done'); }, asked: async (s) => { assert.equal((await s.send('go')).text, 'done'); },
    big: { items: [{ id: '1', content: 'x'.repeat(BIG) }] },
  },
  command: {
    good: { run: () => ({ text: 'fine' }) }, spec: { name: 'it', description: 'x' }, op: 'run',
    ask: async (s) => { assert.notEqual((await s.send('/it')).text, 'fine'); }, asked: async (s) => { assert.equal((await s.send('/it')).text, 'fine'); },
    big: { text: 'x'.repeat(BIG) }, bigOutcome: (s) => s.send('/it').catch((err) => assert.notEqual(err.code, 'INTERNAL_ERROR')),
  },
  store: {
    good: { load: () => ({}), append: () => {}, save: () => {}, delete: () => {}, list: () => ({ ids: [] }) }, spec: { name: 'it' }, op: 'list', options: { sessionStore: { kind: 'host', name: 'it' } },
    ask: (s, agent) => assert.rejects(agent.listStoredSessions({ kind: 'host', name: 'it' }), { code: 'SESSION_ERROR' }),
    asked: async (s, agent) => { assert.deepEqual(await agent.listStoredSessions({ kind: 'host', name: 'it' }), []); },
    big: { ids: ['x'.repeat(BIG)] },
  },
  workspace: {
    good: { stat: ({ path }) => (path === '.' ? { type: 'dir' } : stats), list: () => ({ entries: [] }), read: () => ({ data: 'eA==', version: '1' }), write: () => ({ version: '2' }), remove: () => {} },
    spec: { name: 'it' }, op: 'read', options: { workspaceBackend: { kind: 'host', name: 'it' } },
    ask: (s) => assert.rejects(s.readFile('a'), { code: 'TOOL_ERROR' }), asked: async (s) => { assert.match(await s.readFile('a'), /x/); },
    big: { data: 'eA=='.repeat(BIG / 4), version: '1' },
  },
  transport: {
    acl: 'default_model = "openai/m"\nproviders "openai" { apiKey = "k-123456789" baseUrl = "http://nowhere.invalid/v1" transport = "host/it" models "m" { } }',
    good: { round_trip: () => ({ status: 200, headers: { 'Content-Type': 'text/event-stream' }, text: 'data: {"choices":[{"delta":{"content":"fine"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' }) },
    spec: { name: 'it' }, op: 'round_trip', options: { circuitBreakerThreshold: 1 },
    ask: failing('LLM_ERROR'), asked: async (s) => { assert.equal((await s.send('go')).text, 'fine'); },
    big: { status: 200, text: 'x'.repeat(BIG) },
  },
};

const WAYS = {
  throws: () => { throw new TypeError('broken'); },
  rejects: async () => { throw new RangeError('broken later'); },
  'throws what is no error': () => { throw Object.create(null); },
  'throws what cannot be looked at': () => { throw new Proxy(new Error('x'), { get() { throw new Error('no'); } }); },
  'throws with details that are no JSON': () => { throw Object.assign(new Error('x'), { details: { n: 5n }, kind: 5, retryable: 'perhaps', retryAfterMs: -1 }); },
  'answers with a number': () => 5,
  'answers with a list': () => [1, 2],
  'answers with other fields': () => ({ unheard: true, output: 5, text: 5, decision: 5, items: 5, ids: 5, data: 5, status: 'x' }),
  'answers with what is no JSON': () => ({ output: 5n, text: () => {} }),
  'answers with a loop': () => { const loop = {}; loop.loop = loop; return loop; },
  'answers with half a character': () => ({ output: '\ud800', text: '\ud800' }),
  'answers too deep': () => { let deep = []; for (let i = 0; i < 100; i++) deep = [deep]; return { output: deep, items: deep }; },
  'never answers': () => new Promise(() => {}),
  'tells a piece that is none': (_, context) => { context.chunk(5n); },
  'tells garbage': (_, context) => { context.chunk({ unheard: 1 }); return new Promise((resolve) => { setImmediate(resolve, {}); }); },
};

for (const [kind, { good, spec, op, script = 'say done\nend\n', acl, options = {}, ask, asked, big, bigOutcome = ask }] of Object.entries(KINDS)) {
  const setUp = async (timeout) => {
    const place = new Place();
    place.script(script.repeat(40));
    const agent = await Agent.create(acl ?? place.acl);
    place.agents.push(agent);
    let way;
    agent.registerExtension(kind, { ...spec, ...(timeout && { timeout_ms: timeout }) }, { ...good, [op]: (...args) => (way ?? good[op])(...args) });
    const session = await agent.sessionAsync(place.workspace, options);
    return { agent, session, use: (w) => { way = w; } };
  };

  test(`a ${kind} that goes wrong`, async () => {
    const { agent, session, use } = await setUp(DEADLINE);
    for (const [name, way] of Object.entries(WAYS)) {
      const chunky = kind === 'tool' || kind === 'model' || kind === 'transport';
      if (name === 'tells garbage' && !chunky) continue; // it has no pieces: what is told is dropped
      use(way);
      try {
        await ask(session, agent);
      } catch (err) {
        throw new Error(`${kind} ${name}: ${err.message}`, { cause: err });
      }
    }
    use(undefined);
    await asked(session, agent);
  });

  test(`a ${kind} that answers with 50 MB`, async () => {
    const { agent, session, use } = await setUp();
    use(() => big);
    await bigOutcome(session, agent);
    if (kind === 'tool') { // beyond what the library reads at all
      use(() => ({ ...big, more: 'x'.repeat(BIG) }));
      await ask(session, agent);
    }
    use(undefined);
    await asked(session, agent);
    gc();
  });
}

test('a log that goes wrong', async () => {
  const place = new Place();
  const agent = await place.agent('say done\nend\n'.repeat(40));
  let way;
  agent.registerLog((...args) => way(...args), { level: 'debug', timeoutMs: DEADLINE });
  const session = await agent.sessionAsync(place.workspace);
  for (const [name, one] of Object.entries(WAYS)) {
    way = one;
    assert.equal((await session.send('go')).text, 'done', name);
  }
});
