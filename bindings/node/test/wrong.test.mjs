// Wrong types and values at every public function: a clear error with a code, never a crash,
// and the session still works afterwards.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';

import { Agent, AgentEvent, AgentResult, CodeError, EventStream, FileSessionStore, LocalWorkspaceBackend, MemorySessionStore, Session } from '@a3s-lab/code';
import { Place, collect, internal, leavesNothing } from './place.mjs';

leavesNothing();

const ODD = [undefined, null, 5, -1, NaN, 5n, true, Symbol('s'), () => {}, [], {}, { a: 1 }, new Date(NaN), Buffer.from('x'), '\ud800', 'x\0y', new Proxy({}, {})];

/** Calls with every odd value: it may succeed, or it fails with an error of the library's shape. */
async function everyOdd(name, call, odd = ODD) {
  for (const value of odd) {
    try {
      await call(value);
    } catch (err) {
      const words = `${name} with ${typeof value} ${Object.prototype.toString.call(value)}: ${err?.stack}`;
      assert.ok(err instanceof CodeError && err.code !== 'INTERNAL_ERROR', words);
    }
  }
}

test('opening an agent', async () => {
  await everyOdd('create', (v) => Agent.create(v).then((a) => a.close()));
  const acl = 'default_model = "offline/search"';
  for (const key of ['env', 'cwd', 'limits', 'unheard']) await everyOdd(key, (v) => Agent.create(acl, { [key]: v }).then((a) => a.close()));
  await everyOdd('options', (v) => Agent.create(acl, v).then((a) => a.close()));
  await everyOdd('a variable', (v) => Agent.create(acl, { env: { A: v } }).then((a) => a.close()));
  await assert.rejects(Agent.create(5), (err) => err instanceof TypeError && err.code === 'INVALID_REQUEST');
  await assert.rejects(Agent.create(acl, { env: { A: 5 } }), TypeError);
  await assert.rejects(Agent.create(acl, { unheard: 5 }), /unheard/);
  await assert.rejects(Agent.create(new URL('https://example.com/agent.acl')), TypeError);
});

test('opening a session', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const opens = {
    session: async (...args) => agent.session(...args),
    sessionAsync: (...args) => agent.sessionAsync(...args),
  };
  for (const [name, open] of Object.entries(opens)) {
    await everyOdd(`${name} workspace`, (v) => open(v).then((s) => s.closeAsync()));
    await everyOdd(`${name} options`, (v) => open(place.workspace, v).then((s) => s.closeAsync()));
    await assert.rejects(open(place.workspace, 'text'), TypeError);
    await assert.rejects(open(place.workspace, []), TypeError);
    await assert.rejects(open(path.join(place.root, 'none')), { code: 'SESSION_CONFIGURATION_ERROR', details: { field: 'workspace', reason: 'bad_value' } });
  }
  for (const resume of [async (...args) => agent.resumeSession(...args), (...args) => agent.resumeSessionAsync(...args)]) {
    await everyOdd('resume', (v) => resume(v, { sessionStore: new MemorySessionStore() }));
    await everyOdd('resume options', (v) => resume('x', v));
  }
  await everyOdd('closeSession', (v) => agent.closeSession(v));
});

test('options', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const open = (options) => agent.sessionAsync(place.workspace, options).then((s) => s.closeAsync());
  for (const name of ['model', 'temperature', 'planningMode', 'maxToolRounds', 'autoCompact', 'autoCompactThreshold', 'permissionPolicy', 'confirmationPolicy', 'workspaceBackend',
    'sessionStore', 'sessionId', 'hostEnv', 'retentionLimits', 'artifactStoreLimits', 'tenantId', 'autoSave', 'journal', 'skillDirs', 'queueConfig', 'budgetGuard', 'noSuchOption']) {
    await everyOdd(name, (v) => open({ [name]: v }));
  }
  const loop = {};
  loop.loop = loop;
  await everyOdd('a loop', (v) => open({ hostEnv: v }), [loop, [loop]]);
  const cases = [
    [{ planningMode: 'sometimes' }, RangeError, 'planning_mode'], [{ maxToolRounds: 'many' }, TypeError, 'max_tool_rounds'],
    [{ autoCompactThreshold: 7 }, RangeError, 'auto_compact_threshold'], [{ maxToolRounds: -1 }, RangeError, 'max_tool_rounds'],
    [{ permissionPolicy: { defaultDecision: 'perhaps' } }, RangeError, 'permission_policy'], [{ permissionPolicy: { allow: 3 } }, TypeError, 'permission_policy'],
    [{ permissionPolicy: { alow: [] } }, RangeError, 'permission_policy'], [{ confirmationPolicy: { enabled: true, timeoutAction: 'explode' } }, RangeError, 'confirmation_policy'],
    [{ queueConfig: { timeoutMs: 1 } }, RangeError, 'queue_config'], [{ workspaceBackend: 'local' }, TypeError, 'workspace_backend'],
    [{ workspaceBackend: new LocalWorkspaceBackend(5) }, TypeError, 'workspace_backend'], [{ sessionStore: new FileSessionStore(5) }, TypeError, 'session_store'],
    [{ planingMode: 'auto' }, RangeError, 'planing_mode'], [{ permission_policy: {} }, RangeError, 'permission_policy'],
    [{ maxToolRounds: 1.5 }, TypeError, 'max_tool_rounds'],
  ];
  for (const [options, Native, field] of cases) {
    await assert.rejects(open(options), (err) => {
      assert.ok(err instanceof Native && err instanceof CodeError, `${JSON.stringify(options)}: ${err.stack}`);
      assert.deepEqual([err.code, err.details.field], ['SESSION_CONFIGURATION_ERROR', field]);
      return true;
    });
  }
});

test('requests and options of calls', async () => {
  const session = await new Place().session('say x\nend\n'.repeat(200));
  await everyOdd('stream', async (v) => collect(await session.stream(v)));
  await everyOdd('history', (v) => session.send('x', v));
  await everyOdd('history of', (v) => session.send('x', [v]));
  await everyOdd('content of', (v) => session.send('x', [{ role: 'user', content: v }]));
  await everyOdd('request of', (v) => session.send({ prompt: v }));
  await everyOdd('request with', (v) => session.send({ prompt: 'x', more: v }));
  await everyOdd('options of send', (v) => session.send('x', null, { signal: v }));
  await everyOdd('options of stream', async (v) => collect(await session.stream('x', null, { signal: v })));
  await everyOdd('options of tool', (v) => session.tool('ls', {}, { signal: v }));
  await everyOdd('arguments of tool', (v) => session.tool('ls', v));
  await everyOdd('write', (v) => session.writeFile('a', v));
  await everyOdd('edit', (v) => session.editFile('a', v, v, v));
  await everyOdd('read', (v) => session.readFile('a', { offset: v }));
  await everyOdd('page', (v) => session.runEventPage('x', v, v));
  await everyOdd('confirm', (v) => session.confirmToolUse('x', v, v));
  await assert.rejects(session.send(5), (err) => err instanceof TypeError && err.code === 'INVALID_REQUEST');
  await assert.rejects(session.send({ prompt: 'x', attachments: [] }), /attachments/);
  await assert.rejects(session.runEventPage('x', -1), RangeError);
  await assert.rejects(session.send('  '), (err) => err instanceof RangeError && err.code === 'INVALID_REQUEST');
  assert.equal((await session.send('x')).text, 'x');
});

test('objects that only the library makes', () => {
  assert.throws(() => new Agent(), TypeError);
  assert.throws(() => new Session(), /./);
  assert.throws(() => new EventStream(), /./);
  assert.equal(new AgentEvent('x', {}).type, 'x');
  assert.equal(String(new AgentResult({ text: 't' })), 't');
});

test('the addon itself', () => {
  const native = internal('native').library();
  for (const [name, fn] of Object.entries(native)) {
    if (typeof fn !== 'function' || ['endAll', 'signalsRepair', 'logToFd', 'stats'].includes(name)) continue;
    for (const args of [[], [undefined], ['x'], [{}, {}, {}], [0n], [0n, 'x', 'y', 0], [1n << 63n, 'x', '{}', 0], [-1n, 1, 1], [0n, 1, 'x']]) {
      let given;
      try {
        given = fn(...args);
      } catch (err) {
        assert.ok(err instanceof Error, name);
      }
      given?.catch?.(() => {});
    }
  }
});
