// What handlers give back that is not what it seems, and how their failures are told.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import net from 'node:net';
import test from 'node:test';

import { Agent, EventType, ToolResult } from '@a3s-lab/code';
import { ALL, Place, collect, leavesNothing } from './place.mjs';

leavesNothing();

/** What a tool that gives this comes to. */
async function given(session, value) {
  const registration = session.registerTool({ name: 'give' }, () => value);
  try {
    return await session.tool('give');
  } finally {
    registration.close();
  }
}

test('a result of a tool that does not fit says which field', async () => {
  const session = await new Place().session('say x\nend');
  const cases = [
    [{ exitCode: 1.5 }, 'exitCode', 'an integer, not 1.5'], [{ exitCode: '1' }, 'exitCode', 'an integer, not a string'], [{ exitCode: NaN }, 'exitCode', 'an integer, not NaN'],
    [{ output: 5 }, 'output', 'a string, not 5'], [{ output: null }, 'output', 'a string, not null'], [{ metadata: 'x' }, 'metadata', 'an object, not a string'],
    [{ metadata: ['x'] }, 'metadata', 'an object, not a list'], [{ errorKind: 'timeout' }, 'errorKind', 'an object {type, ...}, not a string'],
  ];
  for (const [fields, field, words] of cases) {
    const { exitCode, output } = await given(session, new ToolResult(fields));
    assert.deepEqual([exitCode, output], [1, `Tool execution error: TypeError: the ${field} of a ToolResult must be ${words}`]);
  }
  const fine = await given(session, new ToolResult({ output: 'x', exitCode: 2, metadata: null, errorKind: { type: 'timeout', op: 'x', duration_ms: 5 } }));
  assert.deepEqual([fine.output, fine.exitCode, fine.errorKind.type], ['x', 2, 'timeout']);
});

test('what JSON would say {} of is refused, and an error counts as thrown', async () => {
  const session = await new Place().session('say x\nend');
  class Private { #x = 1; get x() { return this.#x; } }
  const hidden = { Response: new Response('x'), Blob: new Blob(['x']), Map: new Map([[1, 2]]), RegExp: /x/, ArrayBuffer: new ArrayBuffer(1), Uint8Array: new Uint8Array(1), Private: new Private(), URLSearchParams: new URLSearchParams('a=b') };
  for (const [name, value] of Object.entries(hidden)) {
    for (const [result, where] of [[value, 'the value'], [{ nested: [value] }, '"0"'], [new ToolResult({ metadata: { x: value } }), '"x"']]) {
      const { exitCode, output } = await given(session, result);
      assert.deepEqual([exitCode, output.replace(/\ban? /, '')], [1, `Tool execution error: TypeError: Invalid request: ${where} is ${name}, which JSON cannot say`]);
    }
  }
  const failed = await given(session, new RangeError('no paper'));
  assert.deepEqual([failed.exitCode, failed.metadata.exception], [1, { type: 'RangeError', message: 'no paper' }]);
  for (const [value, text] of [[new URL('http://a/'), '"http://a/"'], [{}, '{}'], [Object.create(null), '{}'], [new (class { a = 1; })(), '{"a":1}'], [new Number(5), '5'], [[], '[]']]) {
    assert.equal((await given(session, value)).output, text);
  }
});

/** The answer of a model that is this function. */
async function answer(model) {
  const agent = await new Place().agent('say x\nend');
  agent.registerModel('mine', model);
  const session = await agent.sessionAsync('.', { model: 'host/mine', circuitBreakerThreshold: 1 });
  return (await session.send('go')).text;
}

test('pieces that are promised are waited for', async () => {
  for (const promised of [() => [Promise.resolve('a'), 'b'], () => [Promise.resolve({ text: 'a' }), Promise.resolve('b')], function* () { yield Promise.resolve('a'); return Promise.resolve({ text: 'ab' }); }]) {
    assert.equal(await answer(promised), 'ab');
  }
  await assert.rejects(answer(() => [Promise.reject(new RangeError('no more')), 'b']), { code: 'LLM_ERROR', message: /RangeError: no more/ });
  await assert.rejects(answer(() => [new RangeError('given back'), 'b']), { code: 'LLM_ERROR', message: /RangeError: given back/ });
  await assert.rejects(answer(() => [new Map(), { text: 'b' }]), { code: 'LLM_ERROR', message: /cannot be a Map/ });
});

test('an answer that is none', async () => {
  for (const [value, words] of [[new RangeError('given back'), /RangeError: given back/], [new Response('x'), /a Response, which JSON/], [{ text: 'x', usage: new Map() }, /"usage" is a Map/]]) {
    await assert.rejects(answer(() => value), { code: 'LLM_ERROR', message: words });
    await assert.rejects(answer(async () => value), { code: 'LLM_ERROR', message: words });
  }
  const session = await new Place().session('call ls {}\nend\nsay done\nend', { permissionPolicy: ALL });
  session.registerExtension('permission', { name: 'it', check_only: true }, { check: () => new Error('given back') });
  const denied = (await collect(await session.stream('go'))).find((e) => e.type === EventType.PERMISSION_DENIED);
  assert.match(denied.payload.reason, /given back/);
});

test('a failure names its cause', async () => {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); }); // nobody listens there any more
  const place = new Place();
  const agent = await Agent.create(`default_model = "openai/m"\nproviders "openai" { apiKey = "k-123456789" baseUrl = "http://127.0.0.1:${port}/v1" transport = "host/net" models "m" { } }`);
  place.agents.push(agent);
  agent.registerTransport('net', ({ url, ...request }, { signal }) => fetch(url, { ...request, signal, redirect: 'manual' }));
  const session = await agent.sessionAsync(place.workspace, { circuitBreakerThreshold: 1 });
  await assert.rejects(session.send('go'), { code: 'LLM_ERROR', message: /TypeError: fetch failed: connect ECONNREFUSED 127\.0\.0\.1/ });

  const other = await new Place().session('say x\nend');
  const long = 'x'.repeat(2000);
  const cases = [
    [new Error('outer', { cause: new Error('inner', { cause: new Error('innermost') }) }), 'outer: inner'], [new Error('outer: inner', { cause: new Error('inner') }), 'outer: inner'],
    [new Error('outer', { cause: 'words' }), 'outer'], [new Error('outer', { cause: Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }) }), 'outer: ECONNREFUSED'],
    [new Error('', { cause: new TypeError('') }), 'Error: TypeError'], [new Error('outer', { cause: new Error(long) }), `outer: ${long.slice(0, 1000)}`],
  ];
  for (const [err, message] of cases) assert.equal((await given(other, err)).metadata.exception.message, message);
});

test('parts without a name, of an agent and of its session', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const [first, second] = [await agent.sessionAsync(place.workspace), await agent.sessionAsync(place.workspace)];
  const made = [agent, first, second].flatMap((owner) => [owner.registerLog(() => {}), owner.registerPermissionChecker(() => 'allow')]);
  assert.deepEqual(made.map((r) => r.name), ['log', 'checker', 'session-log', 'session-checker', 'session-log', 'session-checker']);
  assert.throws(() => first.registerLog(() => {}), { code: 'ALREADY_EXISTS' });
});

test('handlers run outside of what their caller keeps in an AsyncLocalStorage', async () => {
  const kept = new AsyncLocalStorage();
  const session = await new Place().session('say x\nend');
  kept.run('registered', () => {
    session.registerTool({ name: 'plain' }, () => kept.getStore() ?? 'nothing');
    session.registerTool({ name: 'bound' }, AsyncLocalStorage.bind(() => kept.getStore()));
  });
  await kept.run('called', async () => {
    assert.deepEqual([(await session.tool('plain')).output, (await session.tool('bound')).output, kept.getStore()], ['nothing', 'registered', 'called']);
  });
});
