// This program's own parts answer on the thread that calls the library: whatever the thread calls
// meanwhile must not wait for them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import path from 'node:path';
import test from 'node:test';
import { Worker } from 'node:worker_threads';

import { EventType } from '@a3s-lab/code';
import { MapStore, MapWorkspace } from './hosts.mjs';
import { ALL, PACKAGE, Place, collect, gc, handles, leavesNothing, program, until } from './place.mjs';

leavesNothing();

const SOON = 1000; // far above what a call takes, far below any deadline of an answer

/** A store that answers until it is told to think. */
class SlowStore extends MapStore {
  #wake = [];
  stuck = 0;

  think() { this.thinking = true; }

  answer() {
    this.thinking = false;
    this.#wake.splice(0).forEach((wake) => wake());
  }

  async #pause() {
    if (!this.thinking) return;
    this.stuck++;
    await new Promise((resolve) => { this.#wake.push(resolve); });
  }

  async append(...args) {
    await this.#pause();
    super.append(...args);
  }

  async save(...args) {
    await this.#pause();
    super.save(...args);
  }
}

async function slow(script, options) {
  const place = new Place();
  const agent = await place.agent(script);
  const store = new SlowStore();
  const sessionStore = agent.registerSessionStore('slow', store, options);
  const session = await agent.sessionAsync(place.workspace, { sessionStore, permissionPolicy: ALL, confirmationPolicy: { enabled: true } });
  return { place, agent, store, sessionStore, session };
}

async function timed(what, call) {
  const begun = Date.now();
  const result = await call();
  assert.ok(Date.now() - begun < SOON, `${what} took ${Date.now() - begun} ms`);
  return result;
}

const NOW = {
  isClosed: [], history: [], cancel: [], traceEvents: [], toolNames: [], toolDefinitions: [], listCommands: [],
  cancelAsync: [], cancelRun: ['none'], runs: [], runSnapshot: ['none'], runEvents: ['none'], runEventPage: ['none'], currentRun: [], activeTools: [],
  pendingConfirmations: [], confirmToolUse: ['none', true], cancelConfirmations: [],
  registerTool: [{ name: 'mine' }, () => 1], unregisterTool: ['mine'],
  registerCommand: ['mine', 'x', () => ''], registerContextProvider: ['mine', () => []], registerLog: [() => {}], registerPermissionChecker: [() => 'allow'],
};

test('looking at a session and stopping it never wait for its store', async () => {
  const { session, store } = await slow('say one\nend\nsay two\nend');
  await session.send('first');
  store.think();
  const stream = await timed('stream', () => session.stream('second'));
  await until(() => store.stuck > 0, 'the store was not asked');
  const run = (await timed('currentRun', () => session.currentRun())).id;
  for (const [name, args] of Object.entries(NOW)) await timed(name, () => session[name](...args));
  await timed('runEvents', () => session.runEvents(run));
  store.answer();
  const events = await collect(stream);
  assert.deepEqual([events.at(-1).type, events.at(-1).payload.code], ['error', 'CANCELLED']);
  await session.closeAsync();
});

test('what would wait for this thread is refused, with the name of what does not', async () => {
  const { agent, session, sessionStore, place } = await slow('say one\nend');
  const refused = (call, twin) => assert.throws(call, (err) => err.code === 'UNSUPPORTED_OPERATION' && err.message.includes(twin), twin);
  refused(() => agent.session(place.workspace, { sessionStore }), 'sessionAsync');
  refused(() => agent.session(place.workspace, { sessionStore: { kind: 'host', name: 'slow' } }), 'sessionAsync');
  refused(() => agent.resumeSession(session.sessionId, { sessionStore }), 'resumeSessionAsync');
  refused(() => agent.session('.', { workspaceBackend: agent.registerWorkspace('w', new MapWorkspace({})) }), 'sessionAsync');
  refused(() => session.close(), 'closeAsync');
  refused(() => session.getArtifact('a3s://tool-output/read/x'), 'getArtifactAsync');
  assert.equal(session.isClosed(), false);
});

test('the blocking close of a session that a part of this program serves', async () => {
  const place = new Place();
  const agent = await place.agent('call hang {}\nend');
  let signal;
  agent.registerTool({ name: 'hang' }, (_, context) => { signal = context.signal; return new Promise(() => {}); });
  const files = new MapWorkspace({ a: 'x' });
  const session = await agent.sessionAsync('.', { workspaceBackend: agent.registerWorkspace('w', files), permissionPolicy: ALL });
  const stream = await session.stream('go');
  for await (const event of stream) if (event.type === EventType.TOOL_EXECUTION_START) break;
  await until(() => signal, 'the tool was not called');
  await timed('close', () => session.close());
  assert.equal(session.isClosed(), true);
});

test('closing a session whose store is stuck is bounded, and its agent closes', async () => {
  const { agent, session, store } = await slow('say one\nend', { timeoutMs: 500 });
  store.think();
  await session.stream('go');
  await until(() => store.stuck > 0, 'the store was not asked');
  const begun = Date.now();
  await Promise.allSettled([session.closeAsync(), agent.close()]);
  assert.ok(Date.now() - begun < 8000, `it took ${Date.now() - begun} ms`);
  assert.equal(session.isClosed(), true);
  store.answer();
});

const PROGRAM = `
  import fs from 'node:fs';
  import path from 'node:path';
  import { Agent } from '@a3s-lab/code';
  const [acl, workspace, kept] = process.argv.slice(2);
  const agent = await Agent.create(acl);
  const file = (id) => path.join(kept, id);
  const read = async (id) => JSON.parse(await fs.promises.readFile(file(id), 'utf8').catch(() => 'null'));
  const write = (id, value) => fs.promises.writeFile(file(id), JSON.stringify(value));
  const sessionStore = agent.registerSessionStore('files', {
    async load(id, start, limit) {
      const found = await read(id);
      return found && { ...found, facts: found.facts.slice(start, start + limit), count: found.facts.length };
    },
    async append(id, generation, start, facts) {
      const found = (await read(id)) ?? { generation, facts: [] };
      found.facts.splice(start, Infinity, ...facts);
      await write(id, found);
    },
    save: (id, generation, snapshot) => write(id, { generation, snapshot, facts: [] }),
    delete: (id) => fs.promises.rm(file(id), { force: true }),
    list: () => fs.promises.readdir(kept),
  });
`;

test('many sessions open at once in a store of files, with one thread for files', async () => {
  const place = new Place();
  place.script('say one\nend\n'.repeat(3));
  const source = `${PROGRAM}
    const ids = Array.from({ length: 20 }, (_, i) => 's' + i);
    const open = (id) => agent.sessionAsync(workspace, { sessionStore, sessionId: id });
    await Promise.all((await Promise.all(ids.map(open))).map(async (s) => { await s.send('x'); await s.save(); await s.closeAsync(); }));
    const again = await Promise.all(ids.map((id) => agent.resumeSessionAsync(id, { sessionStore })));
    console.log(again.map((s) => s.history().length).every((n) => n === 2), (await agent.listStoredSessions(sessionStore)).length);
    await agent.close();`;
  const kept = path.join(place.root, 'kept');
  (await import('node:fs')).mkdirSync(kept);
  const { code, out, err } = await program(source, [place.acl, place.workspace, kept], { cwd: place.root, env: { UV_THREADPOOL_SIZE: '1' } }).ended;
  assert.deepEqual([code, out, err], [0, 'true 20\n', '']);
});

const STUCK = `
  const stuck = { load: () => {}, append: () => new Promise(() => { told(); }), save() {}, delete() {}, list: () => [] };
  const sessionStore = agent.registerSessionStore('stuck', stuck);
  const session = await agent.sessionAsync(workspace, { sessionStore });
  const asked = new Promise((resolve) => { globalThis.told = resolve; });
  globalThis.kept = await session.stream('go');
  const alive = setInterval(() => {}, 1000); // a run that nobody reads does not keep the process alive
  await asked;
`;

test('a process ends although a store is stuck', async () => {
  const place = new Place();
  place.script('say one\nend');
  for (const [end, want] of [['process.exit(4);', 4], ['clearInterval(alive);', 0]]) {
    const begun = Date.now();
    const { code, err } = await program(`import { Agent } from '@a3s-lab/code'; const [acl, workspace] = process.argv.slice(2); const agent = await Agent.create(acl); ${STUCK} ${end}`,
      [place.acl, place.workspace], { cwd: place.root }).ended;
    assert.deepEqual([code, err], [want, '']);
    assert.ok(Date.now() - begun < 10_000, `it took ${Date.now() - begun} ms`);
  }
});

test('a worker ends although a store is stuck', async () => {
  const place = new Place();
  place.script('say one\nend');
  const source = `
    const { Agent } = require(${JSON.stringify(path.join(PACKAGE, 'lib', 'index.js'))});
    const { parentPort, workerData: { acl, workspace } } = require('node:worker_threads');
    (async () => { const agent = await Agent.create(acl); ${STUCK} parentPort.postMessage(typeof alive); })();`;
  const worker = new Worker(source, { eval: true, workerData: { acl: place.acl, workspace: place.workspace } });
  await once(worker, 'message');
  const begun = Date.now();
  await worker.terminate();
  assert.ok(Date.now() - begun < 10_000, `it took ${Date.now() - begun} ms`);
});

test('sessions whose store is stuck can be collected', async () => {
  const place = new Place();
  const agent = await place.agent('say one\nend');
  const store = new SlowStore();
  const sessionStore = agent.registerSessionStore('slow', store);
  await (async () => {
    const session = await agent.sessionAsync(place.workspace, { sessionStore });
    store.think();
    (await session.stream('go')).close();
    await until(() => store.stuck > 0, 'the store was not asked');
  })();
  await until(async () => {
    await timed('a collection', async () => gc());
    return !handles().handles.session;
  }, 'the session is still held');
  store.answer();
});

test('a reader that lags reads on from the store without holding up the thread', async () => {
  const place = new Place();
  const agent = await place.agent(`say ${'one two three four five '.repeat(400)}\nend`);
  const sessionStore = agent.registerSessionStore('map', new MapStore());
  const session = await agent.sessionAsync(place.workspace, { sessionStore, hostEnv: { sequentialIdPrefix: 'x' }, retentionLimits: { maxEventsPerRun: 10 } });
  const stream = await session.stream('go');
  const events = [(await stream.next()).value];
  await until(async () => (await session.currentRun()) === null, 'the run did not end');
  await timed('what was missed', async () => { for await (const event of stream) events.push(event); });
  assert.deepEqual(events.map((e) => e.sequence), events.map((_, i) => i));
  assert.ok(events.length > 1000);
});
