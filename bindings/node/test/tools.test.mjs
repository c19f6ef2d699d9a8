// Tools that this program implements.
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import vm from 'node:vm';
import { z } from 'zod';

import { EventType, ToolResult } from '@a3s-lab/code';
import { ALL, Place, SLOW, collect, gc, handles, leavesNothing, until } from './place.mjs';

leavesNothing();

const schema = (properties, required = []) => ({ type: 'object', properties, required });

/** A script that makes these calls in turns of their own, and ends. */
const calls = (...steps) => `${steps.map((s) => `call ${s}\nend\n`).join('')}say done\nend\n`;

/** Output and exit code of every call of one run. */
async function outcome(session, prompt = 'go') {
  const ends = (await collect(await session.stream(prompt))).filter((e) => e.type === EventType.TOOL_END);
  return ends.map((e) => [e.toolOutput, e.exitCode]);
}

test('a function is a tool', async () => {
  const session = await new Place().session(calls('add {"a": 2, "b": 3}', 'add {"a": "two"}'), { permissionPolicy: ALL });
  session.registerTool({ name: 'add', description: 'Adds.', parameters: schema({ a: { type: 'integer' }, b: { type: 'integer' } }, ['a']) }, ({ a, b }) => a + b);
  const spec = session.toolDefinitions().find((t) => t.name === 'add');
  assert.deepEqual([spec.description, spec.parameters.properties.a], ['Adds.', { type: 'integer' }]);
  const [[output, code], ...rest] = await outcome(session);
  assert.deepEqual([output, code], ['5', 0]);
  assert.ok(rest.every(([, c]) => c !== 0)); // against the schema
});

test('what a tool gives back', async () => {
  const values = [undefined, null, '', 'text', 0, false, [1, 'ä'], { a: { b: 1 } }, new Date(0), 'half \ud800',
    new ToolResult({ output: 'no', exitCode: 3, metadata: { why: 'x' }, errorKind: { type: 'not_found' } })];
  const want = ['', '', '', 'text', '0', 'false', '[1,"ä"]', '{"a":{"b":1}}', '"1970-01-01T00:00:00.000Z"', 'half \ufffd', 'no'];
  const session = await new Place().session('say x\nend');
  session.registerTool({ name: 'give', parameters: schema({ i: { type: 'integer' } }) }, async ({ i }) => values[i]);
  for (const [i, text] of want.entries()) {
    const result = await session.tool('give', { i });
    assert.deepEqual([result.output, result.exitCode], [text, text === 'no' ? 3 : 0], `value ${i}`);
    if (text === 'no') assert.deepEqual([result.metadata.why, result.errorKind.type], ['x', 'not_found']);
  }
});

test('a tool that throws', async () => {
  const session = await new Place().session(calls('fail {"how": "error"}', 'fail {"how": "mine"}', 'fail {"how": "text"}', 'fail {"how": "json"}', 'fail {"how": "sync"}'), { permissionPolicy: ALL });
  class OutOfPaper extends Error { name = 'OutOfPaper'; }
  const sync = { error: () => { throw new TypeError('no such printer'); }, sync: () => { throw new RangeError('at once'); } };
  session.registerTool({ name: 'fail', parameters: schema({ how: { type: 'string' } }) }, ({ how }) => {
    if (how === 'sync') return sync.sync();
    return (async () => {
      if (how === 'error') sync.error();
      if (how === 'mine') throw new OutOfPaper('tray 1');
      if (how === 'json') return { big: 5n };
      throw Object.create(null);
    })();
  });
  const ends = (await collect(await session.stream('go'))).filter((e) => e.type === EventType.TOOL_END);
  assert.deepEqual(ends.map((e) => [e.exitCode, e.payload.metadata.exception.type]), [
    [1, 'TypeError'], [1, 'OutOfPaper'], [1, 'Error'], [1, 'TypeError'], [1, 'RangeError']]);
  assert.match(ends[0].toolOutput, /no such printer/);
  assert.equal(ends[1].payload.metadata.exception.message, 'tray 1');
});

test('errors of other libraries keep their words', async () => {
  const words = {
    'a list of details': () => Object.assign(new Error('"a" is required'), { details: [{ path: ['a'] }] }),
    'a kind of its own': () => Object.assign(new Error('"a" is required'), { kind: 'ObjectId' }),
    'another realm': () => vm.runInNewContext('new Error("\\"a\\" is required")'),
  };
  const session = await new Place().session('say unused\nend', { permissionPolicy: ALL });
  for (const [name, made] of Object.entries(words)) {
    const tool = session.registerTool({ name: 'it' }, () => { throw made(); });
    assert.equal((await session.tool('it')).output, 'Tool execution error: Error: "a" is required', name);
    tool.close();
  }
});

test('output that is cut within a character', async () => {
  const session = await new Place().session(calls('it {}'), { permissionPolicy: ALL });
  session.registerTool({ name: 'it' }, async (_, context) => {
    for (const piece of ['\ud83d', '\ude00a\ud83d', '', '\ude00']) {
      context.emit(piece);
      await sleep(2); // each is a piece of its own
    }
  });
  const told = (await collect(await session.stream('go'))).filter((e) => e.type === EventType.TOOL_OUTPUT_DELTA);
  assert.equal(told.map((e) => e.text).join(''), '\u{1f600}a\u{1f600}');
});

test('a schema object gives the schema and checks the arguments', async () => {
  const session = await new Place().session('say x\nend');
  const parameters = z.object({ city: z.string().describe('name of the city'), days: z.number().int().default(1), unit: z.enum(['C', 'F']).optional(), code: z.string().transform((c) => c.toUpperCase()).optional() });
  session.registerTool({ name: 'weather', description: 'Says it.', parameters, readOnly: true }, (args) => args);
  const spec = session.toolDefinitions().find((t) => t.name === 'weather').parameters;
  assert.deepEqual([spec.type, spec.properties.city.description, spec.required, spec.properties.unit.enum], ['object', 'name of the city', ['city'], ['C', 'F']]);
  assert.deepEqual(JSON.parse((await session.tool('weather', { city: 'Kyoto', code: 'ab' })).output), { city: 'Kyoto', days: 1, code: 'AB' });
  assert.notEqual((await session.tool('weather', { city: 5 })).exitCode, 0);

  const odd = { '~standard': { version: 1, vendor: 'mine', validate: async (v) => (v.n > 3 ? { value: { n: v.n * 2 } } : { issues: [{ message: 'too small', path: ['n'] }] }), jsonSchema: { input: () => schema({ n: { type: 'integer' } }) } } };
  session.registerTool({ name: 'odd', parameters: odd }, ({ n }) => n);
  assert.equal((await session.tool('odd', { n: 4 })).output, '8');
  const refused = await session.tool('odd', { n: 1 });
  assert.deepEqual([refused.exitCode, refused.metadata.exception], [1, { type: 'ValidationError', message: 'n: too small' }]);
  assert.throws(() => session.registerTool({ name: 'x', parameters: { '~standard': { version: 1, vendor: 'other', validate() {} } } }, () => {}), /"other"/);
});

test('the context', async () => {
  const session = await new Place().session(calls('look {}'), { permissionPolicy: ALL });
  let context;
  session.registerTool({ name: 'look', timeoutMs: 30_000 }, (_, c) => {
    context = c;
    c.emit('half ');
    c.emit('done\n');
    return 'over';
  });
  const events = await collect(await session.stream('go'));
  const start = events.find((e) => e.type === EventType.TOOL_EXECUTION_START);
  assert.deepEqual([context.toolName, context.callId, context.sessionId, context.signal.aborted], ['look', start.toolId, session.sessionId, false]);
  assert.ok(context.deadline > Date.now() && context.deadline <= Date.now() + 30_000);
  assert.equal(events.filter((e) => e.type === EventType.TOOL_OUTPUT_DELTA).map((e) => e.text).join(''), 'half done\n');
  context.emit('too late'); // dropped
  assert.throws(() => context.emit(5), TypeError);
});

test('a tool that tells more than anybody reads does not hold up the loop', async () => {
  const session = await new Place().session(calls('flood {}'), { permissionPolicy: ALL });
  const piece = `${'x'.repeat(1023)}\n`;
  session.registerTool({ name: 'flood' }, async (_, context) => {
    for (let i = 0; i < 20_000; i++) context.emit(piece);
    return 'over';
  });
  let [bytes, ticks] = [0, 0];
  const timer = setInterval(() => ticks++, 5);
  for await (const event of await session.stream('go')) {
    if (event.type === EventType.TOOL_OUTPUT_DELTA) bytes += event.text.length;
    if (event.type === EventType.TOOL_END) assert.match(event.toolOutput, /^over/);
  }
  clearInterval(timer);
  assert.ok(bytes > 0 && bytes <= 20_000 * 1024, `${bytes} bytes`);
});

test('a tool calls the session again', async () => {
  const place = new Place();
  place.file('a.txt', 'hello\n');
  const session = await place.session(calls('twice {}'), { permissionPolicy: ALL });
  session.registerTool({ name: 'inner' }, async () => 'deep');
  session.registerTool({ name: 'twice' }, async () => {
    const [text, inner, run] = await Promise.all([session.readFile('a.txt'), session.tool('inner'), session.currentRun()]);
    await assert.rejects(session.send('nested'), { code: 'SESSION_BUSY' });
    return `${text.trim()} ${inner} ${run.status} ${session.history().length}`;
  });
  assert.match((await outcome(session))[0][0], /hello deep executing/);
});

test('calls of one turn overlap', async () => {
  const session = await new Place().session('call wait {"n": 1}\ncall wait {"n": 2}\ncall wait {"n": 3}\nend\nsay done\nend', { permissionPolicy: ALL });
  let running = 0;
  let most = 0;
  session.registerTool({ name: 'wait', parameters: schema({ n: { type: 'integer' } }), readOnly: true }, async ({ n }) => {
    most = Math.max(most, ++running);
    await sleep(30);
    running--;
    return n;
  });
  assert.deepEqual((await outcome(session)).map(([text]) => text), ['1', '2', '3']);
  assert.ok(most > 1, `${most} at once`);
});

test('cancelling the run aborts the tool', async () => {
  const session = await new Place().session(calls('hang {}'), { permissionPolicy: ALL });
  let reason;
  let begun = false;
  session.registerTool({ name: 'hang' }, (_, { signal }) => new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => { reason = signal.reason; reject(signal.reason); });
    begun = true;
  }));
  const collected = collect(await session.stream('go'));
  await until(() => begun, 'the tool was not called');
  assert.equal(session.cancel(), true);
  const events = await collected;
  assert.equal(events.at(-1).payload.code, 'CANCELLED');
  await until(() => reason !== undefined, 'the tool was not told');
  assert.equal(reason.name, 'AbortError');
});

test('a tool that takes too long', async () => {
  const session = await new Place().session(calls('slow {}'), { permissionPolicy: ALL });
  let aborted = false;
  session.registerTool({ name: 'slow', timeoutMs: 50 }, async (_, { signal }) => {
    await sleep(10_000, undefined, { signal }).catch(() => { aborted = true; });
    return 'too late';
  });
  const [[text, code]] = await outcome(session);
  assert.ok(code !== 0 && /timed out/.test(text), text);
  await until(() => aborted, 'the tool was not told');
});

test('closing the session, or the agent, aborts its tools', async () => {
  for (const end of [(s) => s.closeAsync(), (_, a) => a.close()]) {
    const place = new Place();
    const session = await place.session(calls('hang {}'), { permissionPolicy: ALL });
    let context;
    session.registerTool({ name: 'hang' }, (_, c) => { context = c; return new Promise((r) => { c.signal.addEventListener('abort', r); }); });
    const stream = await session.stream('go');
    await until(() => context !== undefined, 'the tool was not called');
    await end(session, place.agents[0]);
    await until(() => context.signal.aborted, 'the tool was not told');
    await collect(stream);
  }
});

test('names are taken once', async () => {
  const session = await new Place().session('say x\nend');
  session.registerTool({ name: 'one' }, () => 1);
  assert.throws(() => session.registerTool({ name: 'one' }, () => 2), { code: 'ALREADY_EXISTS' });
  assert.throws(() => session.registerTool({ name: 'read' }, () => 2), { code: 'ALREADY_EXISTS' });
  assert.equal((await session.tool('one')).output, '1');
  assert.deepEqual([session.unregisterTool('one'), session.unregisterTool('one')], [true, false]);
  assert.ok(!session.toolNames().includes('one'));
  session.registerTool({ name: 'one' }, () => 3);
  assert.equal((await session.tool('one')).output, '3');
});

test('a policy decides over own tools too', async () => {
  const session = await new Place().session(calls('touch {}'), { permissionPolicy: { deny: ['touch'], defaultDecision: 'allow' } });
  let touched = 0;
  session.registerTool({ name: 'touch' }, () => { touched++; });
  await collect(await session.stream('go'));
  assert.equal(touched, 0);
});

test('tools of an agent serve all its sessions', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const before = await agent.sessionAsync(place.workspace);
  agent.registerTool({ name: 'who' }, (_, c) => c.sessionId);
  const later = await agent.sessionAsync(place.workspace);
  assert.deepEqual([(await before.tool('who')).output, (await later.tool('who')).output], [before.sessionId, later.sessionId]);
  later.registerTool({ name: 'mine' }, () => 'later');
  assert.equal((await before.tool('mine')).ok, false);
  assert.equal(agent.unregisterTool('who'), true);
  assert.equal((await later.tool('who')).ok, false);
});

test('a description that does not fit', async () => {
  const session = await new Place().session('say x\nend');
  for (const [spec, fn, Native] of [
    [null, () => {}, TypeError], ['name', () => {}, TypeError], [{ name: 'x' }, undefined, TypeError], [{ name: 'x' }, 'text', TypeError],
    [{ name: 'x', read_only: true }, () => {}, TypeError], [{ name: 5 }, () => {}, TypeError], [{ name: 'x', timeoutMs: 'long' }, () => {}, TypeError],
    [{ name: 'x', timeoutMs: -1 }, () => {}, RangeError], [{ name: '' }, () => {}, RangeError], [{ name: 'x', parameters: { type: 'nonsense' } }, () => {}, RangeError],
    [{ name: 'x', description: 5n }, () => {}, TypeError],
  ]) assert.throws(() => session.registerTool(spec, fn), (err) => err instanceof Native && typeof err.code === 'string', JSON.stringify(spec, (_, v) => (typeof v === 'bigint' ? 'n' : v)));
  await session.closeAsync();
  assert.throws(() => session.registerTool({ name: 'x' }, () => {}), { code: 'SESSION_CLOSED' });
});

test('a tool keeps nothing alive', async () => {
  const place = new Place();
  await (async () => {
    const agent = await place.agent(SLOW);
    const session = await agent.sessionAsync(place.workspace);
    session.registerTool({ name: 'self' }, () => session.sessionId);
    assert.equal((await session.tool('self')).output, session.sessionId);
    place.agents.length = 0;
  })();
  await until(async () => {
    gc();
    await sleep(1);
    return handles().handles.agent === 0;
  }, 'the agent is still open');
});

test('a call keeps its session alive', async () => {
  const place = new Place();
  const agent = await place.agent('say a\nwait 200\nsay b\nend');
  const sent = (await agent.sessionAsync(place.workspace)).send('go');
  for (let i = 0; i < 20; i++) {
    gc();
    await sleep(2);
  }
  assert.match((await sent).text, /b/);
});
