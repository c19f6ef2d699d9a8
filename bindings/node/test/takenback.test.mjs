// What is taken back while it serves: its request is withdrawn, and the session goes on.
import assert from 'node:assert/strict';
import test from 'node:test';

import { EventType } from '@a3s-lab/code';
import { MapStore, MapWorkspace } from './hosts.mjs';
import { ALL, Place, collect, leavesNothing, until } from './place.mjs';

leavesNothing();

/** A handler that never answers; asked settles with its context when it is called. */
function stuck() {
  let tell;
  const asked = new Promise((resolve) => { tell = resolve; });
  return { asked, serve: (...args) => { tell(args.at(-1)); return new Promise(() => {}); } };
}

const KINDS = {
  tool: [(o, fn) => o.registerTool({ name: 'it' }, fn), async (s) => { assert.notEqual((await s.tool('it')).exitCode, 0); }],
  model: [(o, fn) => o.registerModel('it', fn), (s) => assert.rejects(s.send('go'), { code: 'LLM_ERROR' }), { model: 'host/it', circuitBreakerThreshold: 1 }],
  'permission checker': [(o, fn) => o.registerPermissionChecker(fn), async (s) => { assert.ok((await collect(await s.stream('go'))).some((e) => e.type === EventType.PERMISSION_DENIED)); }, {}, 'call ls {}\nend\nsay done\nend'],
  'context provider': [(o, fn) => o.registerContextProvider('it', fn), async (s) => { assert.equal((await s.send('go')).text, 'done'); }],
  command: [(o, fn) => o.registerCommand('it', 'x', fn), async (s) => { assert.notEqual((await s.send('/it')).text, ''); }],
  store: [(o, fn) => o.registerSessionStore('it', Object.assign(new MapStore(), { append: fn })), (s) => assert.rejects(s.send('go'), { code: 'SESSION_ERROR' }), { sessionStore: { kind: 'host', name: 'it' } }],
  workspace: [(o, fn) => o.registerWorkspace('it', Object.assign(new MapWorkspace({ a: 'x' }), { read: fn })), (s) => assert.rejects(s.readFile('a'), { code: 'TOOL_ERROR' }), { workspaceBackend: { kind: 'host', name: 'it' } }],
};

test('what was withdrawn is not asked of another session, which has one of that name', async () => {
  const place = new Place();
  const agent = await place.agent('call a {}\ncall b {}\nend\nsay done\nend');
  const [mine, other] = await Promise.all([agent.sessionAsync(place.workspace, { permissionPolicy: ALL }), agent.sessionAsync(place.workspace)]);
  const asked = [];
  for (const [name, next] of [['a', 'b'], ['b', 'a']]) {
    mine.registerExtension('tool', { name, read_only: true }, {
      call: () => {
        asked.push('mine');
        for (const end = Date.now() + 100; Date.now() < end;); // the other request comes in meanwhile
        mine.unregisterTool(next);
        return { output: '' };
      },
    });
    other.registerTool({ name, readOnly: true }, () => { asked.push('other'); });
  }
  assert.equal((await mine.send('go')).text, 'done');
  assert.deepEqual(asked, ['mine']);
});

for (const [kind, [register, ask, options = {}, script = 'say done\nend']] of Object.entries(KINDS)) {
  test(`a ${kind}`, async () => {
    const place = new Place();
    const agent = await place.agent(script);
    const { asked, serve } = stuck();
    const registration = register(agent, serve);
    const session = await agent.sessionAsync(place.workspace, { ...(kind === 'permission checker' ? {} : { permissionPolicy: ALL }), ...options });
    const outcome = ask(session);
    const { signal } = await asked;
    assert.equal(signal.aborted, false);
    registration.close();
    await outcome;
    await until(() => signal.aborted, 'the handler was not told');
  });
}
