// Sessions: conversation, records, questions, direct tools, keeping.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import { Agent, AgentEvent, AgentResult, CodeError, EventType, FileSessionStore, LocalWorkspaceBackend, MemorySessionStore } from '@a3s-lab/code';
import { ALL, Place, SLOW, collect, leavesNothing, types, until } from './place.mjs';

leavesNothing();

const READS = 'say Looking.\ncall read {"file_path": "a.txt"}\nend\nsay It says hello.\nend';

test('a run is told and recorded', async () => {
  const place = new Place();
  place.file('a.txt', 'hello\n');
  const session = await place.session(READS, { permissionPolicy: { allow: ['read*'], defaultDecision: 'deny' } });
  const events = await collect(await session.stream('What is in a.txt?'));
  assert.deepEqual(types(events), [
    'agent_start', 'turn_start', 'text_delta', 'tool_start', 'tool_input_delta', 'tool_execution_start', 'tool_end',
    'turn_end', 'turn_start', 'text_delta', 'turn_end', 'agent_end']);
  assert.deepEqual(events.map((e) => e.sequence), events.map((_, i) => i));
  assert.equal(events[0].prompt, 'What is in a.txt?');
  const end = events.find((e) => e.type === EventType.TOOL_END);
  assert.deepEqual([end.toolName, end.exitCode, end.toolOutput], ['read', 0, '     1\thello\n']);
  assert.deepEqual([events.at(-1).text, events.at(-1).verificationSummaryText], ['It says hello.', 'no verification was run']);

  const [run] = await session.runs();
  assert.deepEqual([run.status, run.prompt, run.result_text, run.event_count], ['completed', 'What is in a.txt?', 'It says hello.', events.length]);
  assert.deepEqual([await session.runSnapshot(run.id), await session.runSnapshot('nope')], [run, null]);
  assert.deepEqual([await session.runEvents(run.id), await session.runEvents('nope')], [events, []]);
  assert.deepEqual(session.history().map((m) => m.role), ['user', 'assistant', 'tool', 'assistant']);
  assert.deepEqual([await session.currentRun(), await session.activeTools()], [null, []]);
  assert.deepEqual(session.traceEvents().map((t) => t.name), ['read']);
});

test('pages of events', async () => {
  const session = await new Place().session('say one two three four\nend');
  const events = await collect(await session.stream('go'));
  const { id } = (await session.runs())[0];
  const first = await session.runEventPage(id, null, 2);
  assert.deepEqual(first, {
    events: events.slice(0, 2), firstAvailableSequence: 0, latestSequenceExclusive: events.length, nextAfterSequence: 1, retentionGap: false, hasMore: true,
  });
  assert.deepEqual((await session.runEventPage(id, 1)).events, events.slice(2));
  assert.equal(await session.runEventPage('nope'), null);
  assert.ok(first.events[0] instanceof AgentEvent);
  assert.deepEqual(Object.keys(first.events[0].metadata).sort(), ['run_id', 'sequence', 'session_id', 'timestamp_ms']);
});

test('send', async () => {
  const session = await new Place().session('think hm\nsay hello there\nend\nsay again\nend\nsay thrice\nend');
  const result = await session.send('hi');
  assert.ok(result instanceof AgentResult);
  assert.deepEqual([String(result), result.toolCallsCount, result.verificationStatus, result.verificationSummaryText], ['hello there', 0, 'skipped', 'no verification was run']);
  assert.equal(JSON.parse(result.verificationSummaryJson).status, 'skipped');
  assert.equal((await session.run({ prompt: 'more' })).text, 'again');
  assert.equal((await session.sendRequest({ prompt: 'more' })).text, 'thrice');
  assert.deepEqual((await session.runs()).map((r) => r.id).slice(0, 1), [result.runId]);
});

test('an isolated call leaves the transcript', async () => {
  const session = await new Place().session('call ls {}\nend\nsay one\nend\nexpect aside\nsay two\nend\nsay three\nend');
  await session.send('first');
  const before = session.history();
  assert.ok(before.some((m) => m.content.some((b) => b.toolUseId && typeof b.resultContent === 'string')));
  assert.equal((await session.send('aside', before)).text, 'two'); // what history gives is what history takes
  assert.equal((await session.sendRequest({ prompt: 'x', history: [{ role: 'user', content: [{ type: 'text', text: 'c' }] }] })).text, 'three');
  assert.deepEqual([session.history(), (await session.runs()).length], [before, 3]);
});

test('a failing run is an event, and a rejection of send', async () => {
  const session = await new Place().session('fail denied no luck\nfail denied no luck\nsay fine\nend');
  const events = await collect(await session.stream('go'));
  const last = events.at(-1);
  assert.equal(last.type, 'error');
  assert.match(last.error, /no luck/);
  await assert.rejects(session.send('go'), { code: last.payload.code, message: /no luck/, name: 'CodeError' });
  assert.equal((await session.send('go')).text, 'fine');
});

test('the stack of a failure names who called', async () => {
  const place = new Place();
  const agent = await place.agent('fail denied no luck');
  const session = await agent.sessionAsync(place.workspace, { circuitBreakerThreshold: 1 });
  const calls = [() => session.send('go'), () => agent.sessionAsync(path.join(place.root, 'none')), () => Agent.create('default_model =')];
  for (const call of calls) {
    const whoCalled = async () => { await call(); };
    await assert.rejects(whoCalled(), ({ stack }) => /whoCalled/.test(stack), String(call));
  }
});

test('one prompt at a time', async () => {
  const session = await new Place().session(SLOW);
  const stream = await session.stream('go');
  await assert.rejects(session.stream('again'), { code: 'SESSION_BUSY', kind: 'busy', status: -5 });
  await assert.rejects(session.send('again'), { code: 'SESSION_BUSY' });
  assert.equal((await session.currentRun()).prompt, 'go');
  assert.deepEqual([session.cancel(), session.cancel()], [true, false]);
  await collect(stream);
});

test('cancel ends with one error event', async () => {
  const session = await new Place().session(SLOW);
  const seen = [];
  for await (const event of await session.stream('go')) {
    seen.push(event);
    if (event.type === EventType.TEXT_DELTA) assert.equal(await session.cancelAsync(), true);
  }
  assert.deepEqual([...types(seen).slice(-2), seen.at(-1).payload.code], ['text_delta', 'error', 'CANCELLED']);
  assert.equal((await session.runs())[0].status, 'cancelled');
  assert.equal((await session.send('go on')).text, 'after'); // the lease is free when the loop ends
});

test('cancel reaches a waiting send', async () => {
  const session = await new Place().session(SLOW);
  const sent = session.send('go');
  await until(async () => (await session.currentRun()) !== null, 'no run began');
  assert.equal(await session.cancelRun('nope'), false);
  assert.equal(await session.cancelRun((await session.currentRun()).id), true);
  await assert.rejects(sent, { code: 'CANCELLED', kind: 'cancelled' });
});

test('a limit of the run is an error of its own', async () => {
  const session = await new Place().session(SLOW, { maxExecutionTimeMs: 100 });
  await assert.rejects(session.send('go'), (err) => err instanceof CodeError && err.code !== 'CANCELLED');
});

test('a refused call is told', async () => {
  const place = new Place();
  const session = await place.session('call write {"file_path": "x", "content": "y"}\nend\nsay ok\nend', {
    permissionPolicy: { allow: ['read*'], deny: ['write(x)'], defaultDecision: 'allow' } });
  const denied = (await collect(await session.stream('go'))).filter((e) => e.type === EventType.PERMISSION_DENIED);
  assert.deepEqual(denied.map((e) => [e.toolName, e.payload.args]), [['write', { file_path: 'x', content: 'y' }]]);
  assert.ok(!fs.existsSync(path.join(place.workspace, 'x')));
});

const ASKS = 'call write {"file_path": "x", "content": "y"}\nend\nsay done\nend';
const ASKING = { permissionPolicy: { ask: ['write'] }, confirmationPolicy: { enabled: true, defaultTimeoutMs: 20_000 } };

for (const approved of [true, false]) {
  test(`a question, ${approved ? 'approved' : 'refused'}`, async () => {
    const place = new Place();
    const session = await place.session(ASKS, ASKING);
    const asked = [];
    for await (const event of await session.stream('go')) {
      if (event.type !== EventType.CONFIRMATION_REQUIRED) continue;
      asked.push(...await session.pendingConfirmations());
      assert.equal(await session.confirmToolUse(event.toolId, approved, approved ? null : 'not now'), true);
      assert.equal(await session.confirmToolUse(event.toolId, approved), false);
    }
    assert.deepEqual(asked.map((q) => [q.toolName, q.args, typeof q.toolId, q.remainingMs > 0]), [['write', { file_path: 'x', content: 'y' }, 'string', true]]);
    assert.equal(fs.existsSync(path.join(place.workspace, 'x')), approved);
    assert.deepEqual([await session.pendingConfirmations(), await session.cancelConfirmations()], [[], 0]);
  });
}

test('questions withdrawn', async () => {
  const session = await new Place().session(ASKS, ASKING);
  const seen = [];
  for await (const event of await session.stream('go')) {
    seen.push(event.type);
    if (event.type === EventType.CONFIRMATION_REQUIRED) assert.equal(await session.cancelConfirmations(), 1);
  }
  assert.equal(seen.at(-1), 'agent_end');
});

test('direct tools', async () => {
  const place = new Place();
  const session = await place.session('say x\nend');
  assert.ok((await session.writeFile('d/a.txt', 'one\ntwo\n')).ok);
  assert.equal(await session.readFile('d/a.txt'), '     1\tone\n     2\ttwo\n');
  assert.match(await session.readFile('d/a.txt', { offset: 1, limit: 1 }), /^ {5}2\ttwo\n/);
  assert.ok((await session.editFile('d/a.txt', 'two', 'three')).ok);
  assert.equal(place.read('d/a.txt'), 'one\nthree\n');
  assert.match(String(await session.ls()), /d\//);
  assert.match((await session.ls('d')).output, /a\.txt/);
  assert.deepEqual([await session.glob('**/*.txt'), await session.glob('*.none')], [['d/a.txt'], []]);
  assert.match(await session.grep('thr.e'), /three/);
  assert.match(await session.bash('echo out; exit 3'), /^out/);
  const missing = await session.tool('read', { file_path: 'missing' });
  assert.deepEqual([missing.ok, missing.name, typeof missing.errorKind.type, JSON.parse(missing.errorKindJson)], [false, 'read', 'string', missing.errorKind]);
  await assert.rejects(session.readFile('missing'), { code: 'TOOL_ERROR', op: 'tool.read' });
  assert.equal((await session.tool('nothing')).ok, false);
});

test('glob reads all pages', async () => {
  const place = new Place();
  for (let i = 0; i < 1205; i++) place.file(`f${String(i).padStart(4, '0')}`, '');
  const found = await (await place.session('say x\nend')).glob('f*');
  assert.equal(new Set(found).size, 1205);
});

test('tools and commands of a session', async () => {
  const session = await new Place().session('say x\nend', { permissionPolicy: ALL });
  for (const name of ['read', 'write', 'edit', 'grep', 'glob', 'ls', 'bash']) assert.ok(session.toolNames().includes(name), name);
  const read = session.toolDefinitions().find((t) => t.name === 'read');
  assert.deepEqual([typeof read.description, read.parameters.type], ['string', 'object']);
  assert.ok(session.listCommands().some((c) => c.name.endsWith('help')));
  assert.deepEqual([session.getArtifact('a3s://tool-output/read/none'), await session.getArtifactAsync('a3s://tool-output/read/none')], [null, null]);
});

test('identity', async () => {
  const place = new Place();
  const session = await place.session('say x\nend', { sessionId: 'mine', tenantId: 't', principal: 'p', agentTemplateId: 'a', correlationId: 'c' });
  assert.deepEqual(
    [session.sessionId, session.tenantId, session.principal, session.agentTemplateId, session.correlationId, session.initWarning === null || typeof session.initWarning, session.workspace],
    ['mine', 't', 'p', 'a', 'c', session.initWarning === null ? true : 'string', place.workspace]);
});

test('two equal sessions give equal events', async () => {
  const place = new Place();
  const once = async () => collect(await (await place.session('say hello there\nend', { hostEnv: { sequentialIdPrefix: 'id', fixedTimeMs: 1000 } })).stream('go'));
  assert.deepEqual(await once(), await once());
});

test('a closed session', async () => {
  const place = new Place();
  const agent = await place.agent(SLOW);
  const session = await agent.sessionAsync(place.workspace);
  const stream = await session.stream('go');
  await stream.next();
  assert.deepEqual([await agent.listSessions(), session.isClosed()], [[session.sessionId], false]);
  await session.closeAsync();
  assert.equal((await collect(stream)).at(-1).type, 'error');
  await session.closeAsync();
  session.close();
  assert.ok(session.isClosed());
  for (const call of [() => session.send('x'), () => session.stream('x')]) await assert.rejects(call, { code: 'SESSION_CLOSED' });
  assert.equal((await session.runs())[0].status, 'cancelled');
  assert.ok(session.history().length > 0);
  assert.deepEqual(await agent.listSessions(), []);
});

test('closing by id and by agent', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const session = agent.session(place.workspace);
  assert.deepEqual([await agent.closeSession(session.sessionId), await agent.closeSession('nope'), session.isClosed()], [true, false, true]);
  const other = await agent.sessionAsync(place.workspace);
  await agent.close();
  await agent.close();
  assert.deepEqual([other.isClosed(), agent.isClosed(), await other.runs()], [true, true, []]);
  await assert.rejects(agent.sessionAsync(place.workspace), { code: 'SESSION_CLOSED' });
  assert.throws(() => agent.session(place.workspace), { code: 'SESSION_CLOSED' });
  await assert.rejects(other.send('x'), { code: 'SESSION_CLOSED' });
});

test('closing the agent ends what is under way', async () => {
  const place = new Place();
  const session = await place.session(SLOW);
  const sent = session.send('go');
  await until(async () => (await session.currentRun()) !== null, 'no run began');
  const [outcome] = await Promise.all([sent.catch((err) => err.code), place.agents[0].close()]);
  assert.match(outcome, /CANCELLED|SESSION_CLOSED/);
});

test('bad configurations', async () => {
  const place = new Place();
  for (const source of [path.join(place.root, 'none.acl'), 'default_model = "script/main', 'default_model = "nobody/x"']) {
    await assert.rejects(Agent.create(source), { code: 'CONFIG_ERROR' });
  }
});

test('paths follow the current folder', async () => {
  const place = new Place();
  place.script('say x\nend');
  const before = process.cwd();
  try {
    process.chdir(place.root);
    const agent = await Agent.create('agent.acl');
    place.agents.push(agent);
    process.chdir(place.workspace);
    const session = await agent.sessionAsync('.', { sessionStore: new FileSessionStore('kept'), workspaceBackend: new LocalWorkspaceBackend('.') });
    assert.equal(session.workspace, place.workspace);
    await session.send('x');
    await session.save();
    await session.closeAsync();
  } finally {
    process.chdir(before);
  }
  assert.equal(fs.readdirSync(path.join(place.workspace, 'kept', 'v1', 'sessions')).filter((f) => f.startsWith('id_')).length, 1);
});

test('the environment is that of the moment', async () => {
  const place = new Place();
  fs.writeFileSync(place.acl, SCRIPT_FROM_ENV);
  process.env.SCRIPT_OF_TEST = 'turns.txt';
  try {
    assert.equal((await (await place.session('say from env\nend')).send('x')).text, 'from env');
  } finally {
    delete process.env.SCRIPT_OF_TEST;
  }
  const agent = await Agent.create(place.acl, { env: { SCRIPT_OF_TEST: 'turns.txt', NOT_SET: undefined } });
  place.agents.push(agent);
});

const SCRIPT_FROM_ENV = 'default_model = "script/main"\nproviders "script" { models "main" { script = env("SCRIPT_OF_TEST") } }\n';

for (const kind of ['file', 'memory']) {
  test(`save and resume, ${kind}`, async () => {
    const place = new Place();
    const sessionStore = kind === 'file' ? new FileSessionStore(path.join(place.root, 'store')) : new MemorySessionStore();
    const agent = await place.agent('say one\nend\nsay two\nend');
    const session = await agent.sessionAsync(place.workspace, { sessionStore, tenantId: 't' });
    await session.send('first');
    await session.save();
    const [history, runs, id] = [session.history(), await session.runs(), session.sessionId];
    await session.closeAsync();
    const again = await agent.resumeSessionAsync(id, { sessionStore });
    assert.deepEqual([again.sessionId, again.history(), await again.runs(), again.tenantId], [id, history, runs, 't']);
    assert.equal((await again.send('second')).text, 'two');
    await again.closeAsync();
    const thrice = agent.resumeSession(id, { sessionStore });
    assert.equal(thrice.history().length, 4);
    await assert.rejects(agent.resumeSessionAsync('nobody', { sessionStore }), { code: 'SESSION_ERROR' });
  });
}

test('using closes', async () => {
  const place = new Place();
  const session = await place.session('say x\nend');
  await session[Symbol.asyncDispose]();
  await place.agents[0][Symbol.asyncDispose]();
  assert.ok(session.isClosed() && place.agents[0].isClosed());
});
