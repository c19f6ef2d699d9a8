// worker_threads: each has its own agents and callbacks, and may end at any time.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import path from 'node:path';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

import { ALL, PACKAGE, Place, SLOW, collect, handles, leavesNothing, until } from './place.mjs';

leavesNothing();

/** A worker that runs the code with an agent of its own; post tells the main thread. */
function start(place, code) {
  const source = `
    const { Agent, EventType } = require(${JSON.stringify(path.join(PACKAGE, 'lib', 'index.js'))});
    const { parentPort, workerData, threadId } = require('node:worker_threads');
    const post = (m) => parentPort.postMessage(m);
    (async () => {
      const agent = await Agent.create(workerData.acl);
      const session = await agent.sessionAsync(workerData.workspace, { permissionPolicy: { defaultDecision: 'allow' } });
      ${code}
    })();`;
  return new Worker(source, { eval: true, workerData: { acl: place.acl, workspace: place.workspace } });
}

const nothingLeft = () => until(async () => {
  const { handles: live, closing } = handles();
  return [...Object.values(live), closing].every((n) => n === 0);
}, 'handles are left');

test('FFI-09: callbacks reach the worker that registered them', async () => {
  const place = new Place();
  place.script('call who {}\nend\nsay done\nend\n'.repeat(20));
  const workers = Array.from({ length: 3 }, () => start(place, `
    let served = 0;
    session.registerTool({ name: 'who' }, () => { served++; return 'thread ' + threadId; });
    const outputs = [];
    for (let i = 0; i < 10; i++) {
      for await (const e of await session.stream('go')) if (e.type === EventType.TOOL_END) outputs.push(e.toolOutput);
    }
    await agent.close();
    post({ threadId, served, outputs: [...new Set(outputs)] });`));
  const told = await Promise.all(workers.map(async (w) => (await once(w, 'message'))[0]));
  for (const { threadId, served, outputs } of told) assert.deepEqual([served, outputs], [10, [`thread ${threadId}`]]);
  assert.equal(new Set(told.map((t) => t.threadId)).size, 3);
  await Promise.all(workers.map((w) => (w.threadId === -1 ? undefined : once(w, 'exit'))));
  await nothingLeft();
});

const MOMENTS = {
  'a stream is read': 'post(0); for await (const e of await session.stream("go")) post(e.type);',
  'a stream is open and nobody reads': 'globalThis.kept = await session.stream("go"); post(0); setInterval(() => {}, 1000);',
  'an operation waits': 'post(0); await session.send("go");',
  'a command runs': 'post(0); await session.bash("sleep 60");',
  'a tool of the worker runs': 'session.registerTool({ name: "hang" }, () => { post(0); return new Promise(() => {}); }); await session.tool("hang");',
  'agents are opened': 'post(0); for (;;) await Agent.create(workerData.acl);',
  'sessions are opened': 'post(0); for (;;) await agent.sessionAsync(workerData.workspace);',
  'the thread is busy': 'globalThis.kept = await session.stream("go"); post(0); for (;;) session.history();',
};

for (const [moment, code] of Object.entries(MOMENTS)) {
  test(`terminate while ${moment}`, async () => {
    const place = new Place();
    place.script(SLOW);
    for (let i = 0; i < 3; i++) {
      const worker = start(place, code);
      await once(worker, 'message');
      await sleep(5 * i);
      const code0 = await worker.terminate();
      assert.equal(code0, 1);
      await nothingLeft();
    }
  });
}

test('a worker that ends by itself, or by process.exit', async () => {
  const place = new Place();
  place.script(SLOW);
  for (const [code, want] of [['globalThis.kept = await session.stream("go");', 0], ['globalThis.kept = session.send("go"); process.exit(3);', 3], ['await session.stream("go"); throw new Error("mine");', 'mine']]) {
    const worker = start(place, code);
    let error;
    worker.on('error', (err) => { error = err.message; });
    const status = await new Promise((resolve) => { worker.on('exit', resolve); });
    assert.equal(error ?? status, want);
    await nothingLeft();
  }
});

test('main thread and workers at once', async () => {
  const place = new Place();
  place.script(`${'say one two three\n'.repeat(50)}end\n`.repeat(20));
  const worker = start(place, `
    let n = 0;
    for (let i = 0; i < 10; i++) for await (const e of await session.stream('go')) if (e.type === EventType.TEXT_DELTA) n++;
    post(n);`);
  const told = once(worker, 'message');
  const exited = once(worker, 'exit');
  const session = await place.session(`${'say one two three\n'.repeat(50)}end\n`.repeat(20), { permissionPolicy: ALL });
  for (let i = 0; i < 10; i++) assert.equal((await collect(await session.stream('go'))).at(-1).type, 'agent_end');
  assert.ok((await told)[0] > 0);
  await exited;
});
