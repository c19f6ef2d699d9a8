// Models, stores, workspaces and the like as objects and functions of this program.
import assert from 'node:assert/strict';
import path from 'node:path';
import test from 'node:test';

import { CodeError, EventType, ExtensionError, FileSessionStore, HostSessionStore, HostWorkspaceBackend, Registration } from '@a3s-lab/code';
import { ALL, Place, collect, internal, leavesNothing, until } from './place.mjs';
import { MapStore, MapWorkspace } from './hosts.mjs';

leavesNothing();

const { answering } = internal('kinds');

/** Opens an agent whose model is a function of this program. */
async function withModel(client, options) {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  agent.registerModel('mine', client, options);
  const open = (more) => agent.sessionAsync(place.workspace, { model: 'host/mine', circuitBreakerThreshold: 1, permissionPolicy: ALL, ...more });
  return { place, agent, open, session: await open() };
}

test('a model that is a generator', async () => {
  const asked = [];
  const { session, place } = await withModel(async function* (request, context) {
    asked.push(request);
    assert.equal(context.signal.aborted, false);
    const last = request.messages.at(-1).content[0];
    if (last.type === 'tool_result') {
      yield 'It says ';
      yield { text: last.resultContent.trim() };
      return { usage: { promptTokens: 3, completionTokens: 4, totalTokens: 7 }, responseId: 'r1', stop: 'end_turn' };
    }
    yield { reasoning: 'look ' };
    yield { toolCall: { id: 'c1', name: 'read', arguments: { file_path: 'a.txt' } } };
    return undefined;
  });
  place.file('a.txt', 'hello\n');
  const events = await collect(await session.stream('What is in a.txt?'));
  assert.deepEqual([events.at(-1).text, events.at(-1).totalTokens], ['It says 1\thello', 7]);
  assert.equal(events.find((e) => e.type === EventType.REASONING_DELTA).text, 'look ');
  const [first, second] = asked;
  assert.deepEqual([first.model, first.sessionId, first.tools.some((t) => t.name === 'read' && t.parameters.properties.file_path)], ['mine', session.sessionId, true]);
  assert.deepEqual(second.messages.map((m) => m.role), ['user', 'assistant', 'tool']);
  assert.deepEqual([second.messages[1].content.at(-1).input, second.messages[2].content[0].toolUseId !== undefined], [{ file_path: 'a.txt' }, true]);
});

test('pieces that are cut within a character', async () => {
  const place = new Place();
  const agent = await place.agent('say unused\nend');
  const halves = ['a\ud83d', '\ude00b', '', 'c\ud83d'];
  agent.registerModel('texts', async function* () { yield* halves; });
  agent.registerModel('objects', async function* () { for (const text of halves) yield { text }; });
  agent.registerModel('list', () => halves);
  agent.registerModel('whole', () => halves, { stream: false });
  for (const name of ['texts', 'objects', 'list', 'whole']) {
    const session = await agent.sessionAsync(place.workspace, { model: `host/${name}`, permissionPolicy: ALL });
    assert.equal((await session.send('go')).text, 'a\u{1f600}bc\ufffd', name);
  }
});

test('what a model may give', async () => {
  const answers = [
    ['a text', 'a text'], [{ text: 'an object' }, 'an object'], [['pieces ', 'in a list'], 'pieces in a list'], [new Set(['in ', 'a set']), 'in a set'],
    [Promise.resolve('later'), 'later'], [(function* gen() { yield 'one '; yield { text: 'two' }; }()), 'one two'], [[{ usage: { promptTokens: 1, completionTokens: 1, totalTokens: 2 } }, 'x'], 'x'],
  ];
  let next;
  const { session, agent, open } = await withModel(() => next);
  for (const [answer, want] of answers) {
    next = answer;
    assert.equal(String(await session.send('go', [])), want, want);
  }
  agent.registerModel('short', { complete: ({ messages }) => `${messages.length} messages` });
  assert.equal(String(await (await open({ model: 'host/short' })).send('go')), '1 messages');
  agent.registerModel('both', function* gen() { yield 'all '; yield 'at once'; return { stop: 'end_turn' }; }, { stream: false, context: 9000, output: 100, toolCall: false });
  assert.equal(String(await (await open({ model: 'host/both' })).send('go')), 'all at once');
});

test('a generator is ended when its run is cancelled, and pieces are not gathered without bound', async () => {
  let ended = false;
  let told = 0;
  const { session } = await withModel(async function* () {
    try {
      for (;;) {
        told++;
        yield 'more ';
      }
    } finally {
      ended = true;
    }
  });
  for await (const event of await session.stream('go')) if (event.type === EventType.TEXT_DELTA) session.cancel();
  await until(() => ended, 'the generator goes on');
  assert.ok(told < 1e6);
});

test('failures of a model', async () => {
  let raise;
  const { session } = await withModel(() => { throw raise; });
  raise = new ExtensionError('no quota', { retryable: false, details: { left: 0 } });
  await assert.rejects(session.send('x'), { code: 'LLM_ERROR', retryable: false, message: /no quota/ });
  raise = new ExtensionError('later', { retryable: true, retryAfterMs: 1 });
  await assert.rejects(session.send('x'), { code: 'LLM_ERROR', retryable: true });
  for (const odd of [null, undefined, 5, 'text', Symbol('s'), {}, Object.assign(new Error('x'), { details: { n: 5n } }), new Proxy(new Error('x'), { get() { throw new Error('not to be looked at'); } }), Object.create(null)]) {
    raise = odd;
    await assert.rejects(session.send('x'), { code: 'LLM_ERROR' });
  }
});

test('a permission checker', async () => {
  const calls = (path_) => `call write {"file_path": "${path_}", "content": "x"}\nend\n`;
  const place = new Place();
  const session = await place.session(`${calls('a')}${calls('b')}say done\nend`);
  const asked = [];
  const checker = session.registerPermissionChecker({
    check: async (request) => { asked.push(request); return request.args.file_path === 'a' ? 'allow' : { decision: 'deny', reason: 'not b' }; },
    expose: ({ tool, sessionId }) => tool !== 'bash' && sessionId === session.sessionId,
  });
  const events = await collect(await session.stream('go'));
  assert.deepEqual(events.filter((e) => e.type === EventType.TOOL_END).map((e) => e.exitCode === 0), [true, false]);
  assert.equal(events.find((e) => e.type === EventType.PERMISSION_DENIED).payload.reason, 'not b');
  assert.deepEqual([asked[0].tool, asked[0].effects.write, typeof asked[0].callId, asked[0].sessionId], ['write', true, 'string', session.sessionId]);
  assert.ok(checker instanceof Registration && checker.name === 'session-checker');
  checker.close();
  checker.close();
  place.script(`${calls('a')}say done\nend`);
  assert.ok((await collect(await (await place.agents[0].sessionAsync(place.workspace)).stream('go'))).some((e) => e.type === EventType.PERMISSION_DENIED));
});

for (const [what, checker] of Object.entries({ throws: () => { throw new Error('broken'); }, 'gives garbage': () => 5, 'gives nothing': () => {}, 'gives another word': () => 'perhaps' })) {
  test(`a checker that ${what} denies`, async () => {
    const session = await new Place().session('call ls {}\nend\nsay done\nend');
    session.registerPermissionChecker(checker);
    assert.ok((await collect(await session.stream('go'))).some((e) => e.type === EventType.PERMISSION_DENIED));
  });
}

test('context, commands and log lines', async () => {
  const place = new Place();
  const agent = await place.agent('expect the answer is 42\nsay done\nend');
  const lines = [];
  agent.registerLog((line) => { lines.push(line); }, { level: 'debug' });
  agent.registerContextProvider('issues', async function* ({ query, maxResults }) { yield { id: query, content: 'the answer is 42', tokenCount: maxResults }; });
  agent.registerContextProvider('broken', () => { throw new Error('down'); });
  const session = await agent.sessionAsync(place.workspace);
  assert.equal((await session.send('go')).text, 'done');
  await until(() => lines.some((l) => l.sessionId === session.sessionId && /broken|down/.test(`${l.message}${JSON.stringify(l.fields ?? {})}`)), 'no line tells of the provider');
  const shown = session.registerCommand('where', 'Says where.', (args, { workspace, toolNames, mcpServers }, { signal }) => `${args}${workspace === place.workspace}${toolNames.length > 3}${mcpServers.length}${signal.aborted}`, { usage: '/where NOW' });
  assert.equal((await session.send('/where x')).text, 'xtruetrue0false');
  assert.equal(session.listCommands().find((c) => /where/.test(c.name)).usage, '/where NOW');
  shown.close();
  assert.ok(!session.listCommands().some((c) => /where/.test(c.name)));
  session.registerCommand('odd', 'x', () => 5);
  assert.match((await session.send('/odd')).text, /must be a string/);
});

test('a session store', async () => {
  const place = new Place();
  const agent = await place.agent('say one\nend\nsay two\nend');
  const map = new MapStore();
  const sessionStore = agent.registerSessionStore('map', map);
  assert.ok(sessionStore instanceof HostSessionStore && sessionStore.kind === 'host' && sessionStore.backend === 'host');
  const session = await agent.sessionAsync(place.workspace, { sessionStore, sessionId: 'notebook' });
  assert.equal((await session.send('first')).text, 'one');
  await session.save();
  await session.send('second');
  assert.deepEqual([await session.confirmToolUse('none', true), await session.cancelAsync(), session.history().length], [false, false, 4]);
  const runs = await session.runs();
  await session.closeAsync();
  assert.deepEqual([...map.kept.keys()], ['notebook']);
  assert.deepEqual(await agent.listStoredSessions(sessionStore), ['notebook']);
  const again = await agent.resumeSessionAsync('notebook', { sessionStore });
  assert.deepEqual([again.history().map((m) => m.content[0].text), await again.runs()], [['first', 'one', 'second', 'two'], runs]);
  await assert.rejects(agent.resumeSessionAsync('none', { sessionStore }), { code: 'SESSION_ERROR' });
  await assert.rejects(agent.sessionAsync(place.workspace, { sessionStore: { kind: 'host', name: 'none' } }), CodeError);
});

test('a store with blobs', async () => {
  const place = new Place();
  const agent = await place.agent('call big {}\nend\nsay done\nend');
  const map = new MapStore();
  map.withBlobs();
  const sessionStore = agent.registerSessionStore('map', map);
  agent.registerTool({ name: 'big' }, () => 'ä'.repeat(200_000));
  const session = await agent.sessionAsync(place.workspace, { sessionStore, permissionPolicy: ALL });
  await session.send('go');
  await session.save();
  assert.ok(map.blobs.size > 0 && [...map.blobs.values()].every((b) => Buffer.isBuffer(b)));
  const uri = session.traceEvents()[0].artifact_uris[0];
  assert.throws(() => session.getArtifact(uri), { code: 'UNSUPPORTED_OPERATION', message: /getArtifactAsync/ });
  assert.equal((await session.getArtifactAsync(uri)).content.length, 200_000);
});

test('a store that fails', async () => {
  const place = new Place();
  const agent = await place.agent('say one\nend');
  const map = new MapStore();
  const sessionStore = agent.registerSessionStore('map', map);
  map.append = async () => { throw new ExtensionError('disk full', { kind: 'io' }); };
  const session = await agent.sessionAsync(place.workspace, { sessionStore });
  await assert.rejects(session.send('x'), { code: 'SESSION_ERROR', message: /disk full/ });
});

test('a workspace', async () => {
  const place = new Place();
  const agent = await place.agent('call write {"file_path": "notes/b.txt", "content": "new"}\nend\nsay done\nend');
  const files = new MapWorkspace({ 'a.txt': 'hello\n' });
  const workspaceBackend = agent.registerWorkspace('notebook', files, { root: 'notebook:' });
  assert.ok(workspaceBackend instanceof HostWorkspaceBackend);
  const session = await agent.sessionAsync('.', { workspaceBackend, permissionPolicy: ALL });
  assert.equal(session.workspace, 'notebook:');
  assert.equal(await session.readFile('a.txt'), '     1\thello\n');
  await assert.rejects(session.readFile('missing'), { code: 'TOOL_ERROR', details: { exit_code: 1, error_kind: { type: 'not_found', path: 'missing' } } });
  await session.send('go');
  assert.equal(files.files.get('notes/b.txt').toString(), 'new');
  assert.match(String(await session.ls('notes')), /b\.txt/);
  assert.deepEqual(['bash', 'grep'].filter((t) => session.toolNames().includes(t)), []);
});

test('a workspace with a shell and a search', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const files = new MapWorkspace({ 'a.txt': 'hello\n' });
  files.run = async function* run(line, { env, timeoutMs }) {
    yield `${line} `;
    yield Buffer.from(typeof env === 'object' && (timeoutMs === undefined || timeoutMs > 0) ? 'bytes' : 'no');
    return 3;
  };
  files.search = ({ glob, grep }) => (glob ? { files: [{ path: 'a.txt', size: 6, modifiedMs: 1 }] } : { lines: [{ path: 'a.txt', line: 1, text: `hello ${grep.ignoreCase}` }], stats: { tooLarge: 1 } });
  const session = await agent.sessionAsync('.', { workspaceBackend: agent.registerWorkspace('w', files), permissionPolicy: ALL });
  const result = await session.tool('bash', { command: 'make' });
  assert.deepEqual([result.output.startsWith('make bytes'), result.metadata.exit_code], [true, 3]);
  assert.deepEqual(await session.glob('*.txt'), ['a.txt']);
  assert.match(await session.grep('hello'), /a\.txt/);
});

test('a file that is too large, and a conflict', async () => {
  const { ops } = answering('workspace', new MapWorkspace({ a: 'x'.repeat(10) }), {});
  await assert.rejects(ops.read({ path: 'a', max: 9 }), { kind: 'limit' });
  assert.equal((await ops.read({ path: 'a', max: 10 })).data, Buffer.from('x'.repeat(10)).toString('base64'));
  await assert.rejects(ops.write({ path: 'a', data: '', if_absent: true }), { kind: 'conflict', details: { expected: 'absent', actual: Buffer.from('x'.repeat(10)).toString('hex') } });
});

test('what answers a request of HTTP', async () => {
  const answer = async (response) => {
    const { ops } = answering('transport', () => response, {});
    const chunks = [];
    const result = await ops.round_trip({ method: 'POST', url: 'http://x/', headers: { A: ['b'] }, body: 'aGk=' }, { chunk: (c) => chunks.push(c), signal: AbortSignal.any([]) }).catch((err) => err);
    return [result, chunks];
  };
  assert.deepEqual(await answer({ status: 204 }), [{ status: 204, headers: {} }, []]);
  assert.deepEqual(await answer({ status: 200, headers: { a: 'b' }, body: 'text' }), [{ status: 200, headers: { a: 'b' }, text: 'text' }, []]);
  assert.deepEqual(await answer({ status: 200, headers: [['a', 'b']], body: Buffer.from('x') }), [{ status: 200, headers: { a: 'b' }, data: 'eA==' }, []]);
  for (const odd of [5, null, 'x']) assert.ok((await answer(odd))[0] instanceof TypeError);
  let seen;
  await answering('transport', { roundTrip: (request) => { seen = request; return { status: 200 }; } }, {}).ops.round_trip({ method: 'GET', url: 'u', headers: {} }, {});
  assert.deepEqual(seen, { method: 'GET', url: 'u', headers: {}, body: undefined });
});

const ANSWER = 'data: {"choices":[{"delta":{"content":"Hi "}}]}\n\ndata: {"choices":[{"delta":{"content":"there"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
for (const [what, response] of Object.entries({
  'a response of fetch': () => new Response(ANSWER, { status: 200, headers: { 'content-type': 'text/event-stream' } }),
  pieces: () => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body: ANSWER.match(/[^]{1,7}/g) }),
  bytes: () => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body: new TextEncoder().encode(ANSWER) }),
})) {
  test(`a transport that gives ${what}`, async () => {
    const place = new Place();
    const { Agent } = await import('@a3s-lab/code');
    const agent = await Agent.create('default_model = "openai/m"\nproviders "openai" { apiKey = "k-123456789" baseUrl = "http://nowhere.invalid/v1" transport = "host/mine" models "m" { } }');
    place.agents.push(agent);
    let asked;
    agent.registerTransport('mine', async (request, { signal }) => { asked = request; signal.throwIfAborted(); return response(); });
    const session = await agent.sessionAsync(place.workspace);
    assert.equal((await session.send('go')).text, 'Hi there');
    assert.deepEqual([asked.method, Buffer.isBuffer(asked.body), JSON.parse(asked.body).model, asked.headers.Authorization], ['POST', true, 'm', ['Bearer k-123456789']]);
  });
}

test('what cannot serve', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const odd = [undefined, null, 5, 'x', {}, [], { load() {} }];
  const needs = {
    registerModel: [(v) => agent.registerModel('x', v), /stream or complete/],
    registerSessionStore: [(v) => agent.registerSessionStore('x', v), /load, append, save, delete, list/],
    registerWorkspace: [(v) => agent.registerWorkspace('x', v), /stat, list, read, write, remove/],
    registerTransport: [(v) => agent.registerTransport('x', v), /roundTrip/],
    registerPermissionChecker: [(v) => agent.registerPermissionChecker(v), /check/],
    registerContextProvider: [(v) => agent.registerContextProvider('x', v), /query/],
    registerLog: [(v) => agent.registerLog(v), /write/],
    registerCommand: [(v) => agent.registerCommand('x', 'y', v), /run/],
  };
  for (const [name, [register, words]] of Object.entries(needs)) {
    for (const value of odd) {
      assert.throws(() => register(value), (err) => err instanceof TypeError && err.code === 'INVALID_REQUEST' && words.test(err.message), `${name} of ${JSON.stringify(value)}`);
    }
  }
  for (const options of [5, 'x', [], { timeout: 1 }]) assert.throws(() => agent.registerModel('x', () => 'y', options), TypeError);
  for (const timeoutMs of ['x', -1, 1.5, NaN]) assert.throws(() => agent.registerModel('x', () => 'y', { timeoutMs }), CodeError);
  for (const name of [undefined, null, 5, '', 'a b', 'ü', 'x'.repeat(65)]) assert.throws(() => agent.registerModel(name, () => 'y'), (err) => err.code === 'INVALID_REQUEST');
  const session = await agent.sessionAsync(place.workspace);
  assert.equal(session.registerModel, undefined);
  agent.registerModel('x', () => 'y');
  assert.throws(() => agent.registerModel('x', () => 'y'), { code: 'ALREADY_EXISTS' });
  await session.closeAsync();
  assert.throws(() => session.registerCommand('x', 'y', () => ''), { code: 'SESSION_CLOSED' });
});

test('stores of files are untouched', async () => {
  const place = new Place();
  const sessionStore = new FileSessionStore(path.join(place.root, 'kept'));
  const session = await place.session('say x\nend', { sessionStore });
  await session.send('go');
  session.close();
  assert.deepEqual(await place.agents[0].listStoredSessions(sessionStore), [session.sessionId]);
  await assert.rejects(place.agents[0].listStoredSessions(), CodeError);
  await assert.rejects(place.agents[0].listStoredSessions(5), CodeError);
});
