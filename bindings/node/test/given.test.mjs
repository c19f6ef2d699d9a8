// What callers give: options that are none, names that are none, arguments that are left out, and
// a current folder that was deleted.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Agent, CodeError, MemorySessionStore } from '@a3s-lab/code';
import { Place, leavesNothing, program } from './place.mjs';

leavesNothing();

const refusal = (words) => (err) => {
  assert.ok(err instanceof TypeError && err instanceof CodeError && err.details.reason === 'bad_type', err.stack);
  assert.match(err.message, words);
  return true;
};

class Fields { tenantId = 'mine'; }
class Hidden { get tenantId() { return 'mine'; } }

const NONE = [
  [new Map([['tenantId', 'mine']]), /a Map/], [new Set(['tenantId']), /a Set/], [[['tenantId', 'mine']], /a list/], [Promise.resolve({}), /a Promise/], [new Date(), /a Date/],
  [new Error('x'), /an Error/], [new Hidden(), /a Hidden/], [Buffer.from('x'), /a Uint8Array/], [new URL('file:///'), /a URL/], ['text', /a string/], [5, /a number/],
];

test('what is no object of options', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const session = await agent.sessionAsync(place.workspace, new Fields());
  assert.equal(session.tenantId, 'mine');
  assert.equal((await agent.sessionAsync(place.workspace, Object.assign(Object.create(null), { tenantId: 'bare' }))).tenantId, 'bare');
  for (const [options, words] of NONE) {
    await assert.rejects(agent.sessionAsync(place.workspace, options), refusal(words));
    assert.throws(() => agent.session(place.workspace, options), refusal(words));
    await assert.rejects(agent.resumeSessionAsync('x', options), refusal(words));
    await assert.rejects(Agent.create(place.acl, options), refusal(words));
    await assert.rejects(session.send('x', null, options), refusal(words));
    await assert.rejects(session.readFile('a', options), refusal(words));
    assert.throws(() => session.registerLog(() => {}, options), refusal(words));
  }
  for (const [value, words] of NONE.slice(0, 9).filter(([v]) => !Array.isArray(v))) {
    await assert.rejects(agent.sessionAsync(place.workspace, { permissionPolicy: value }), refusal(words));
    await assert.rejects(Agent.create(place.acl, { env: value }), refusal(words));
  }
});

test('names that are no options of a call', async () => {
  const place = new Place();
  place.file('a', 'one\ntwo\n');
  const agent = await place.agent('say x\nend');
  const session = await agent.sessionAsync(place.workspace);
  const call = { sginal: AbortSignal.abort() };
  const calls = [
    () => session.send('x', null, call), () => session.sendRequest({ prompt: 'x' }, call), () => session.stream('x', null, call), () => session.streamRequest({ prompt: 'x' }, call),
    () => session.save(call), () => session.getArtifactAsync('a3s://x', call), () => session.tool('ls', {}, call), () => session.readFile('a', call), () => session.writeFile('a', 'x', call),
    () => session.editFile('a', 'x', 'y', false, call), () => session.ls('.', call), () => session.glob('*', call), () => session.grep('x', call), () => session.bash('true', call),
    () => session.closeAsync(call), () => agent.closeSession(session.sessionId, call), () => agent.listStoredSessions(new MemorySessionStore(), call),
    () => agent.sessionAsync(place.workspace, {}, call), () => agent.resumeSessionAsync('x', { sessionStore: new MemorySessionStore() }, call),
  ];
  for (const one of calls) await assert.rejects(one, refusal(/no option "sginal"; it has .*signal$/), String(one));
  await assert.rejects(session.readFile('a', { ofset: 1 }), refusal(/readFile has no option "ofset"; it has offset, limit, signal$/));
  await assert.rejects(session.send('x', null, AbortSignal.abort()), refusal(/an object \{signal\}, not an AbortSignal$/));
  assert.match(await session.readFile('a', { offset: 1, signal: new AbortController().signal }), /two/);
  await assert.rejects(session.readFile('a', { signal: AbortSignal.abort() }), { code: 'CANCELLED' });
});

test('arguments that must be strings are refused by their names', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const session = await agent.sessionAsync(place.workspace);
  const calls = {
    configSource: [(v) => Agent.create(v)],
    sessionId: [(v) => agent.resumeSessionAsync(v, {}), async (v) => agent.resumeSession(v, {}), (v) => agent.closeSession(v)],
    runId: [(v) => session.cancelRun(v), (v) => session.runSnapshot(v), (v) => session.runEvents(v), (v) => session.runEventPage(v)],
    uri: [async (v) => session.getArtifact(v), (v) => session.getArtifactAsync(v)],
    toolId: [(v) => session.confirmToolUse(v, true)],
    name: [(v) => session.tool(v)],
    path: [(v) => session.readFile(v), (v) => session.writeFile(v, 'x'), (v) => session.editFile(v, 'x', 'y')],
    content: [(v) => session.writeFile('a', v)],
    oldString: [(v) => session.editFile('a', v, 'y')],
    newString: [(v) => session.editFile('a', 'x', v)],
    pattern: [(v) => session.glob(v), (v) => session.grep(v)],
    command: [(v) => session.bash(v)],
  };
  for (const [name, all] of Object.entries(calls)) {
    for (const call of all) {
      for (const value of [undefined, null]) await assert.rejects(call(value), refusal(new RegExp(`^${name} is missing: it must be a string$`)));
      await assert.rejects(call(5), refusal(new RegExp(`^${name} must be a string, not a number$`)));
      if (/Id$|uri|name/.test(name)) await assert.rejects(call(''), (err) => err instanceof RangeError && err.details.field === name && err.message === `${name} is empty`);
    }
  }
  await assert.rejects(session.ls(5), refusal(/^path must be/));
  await assert.rejects(agent.sessionAsync(), /workspace/);
});

test('a current folder that was deleted', async () => {
  const place = new Place();
  place.script('say x\nend');
  const { out, err, code } = await program(`
    import fs from 'node:fs';
    import { Agent, CodeError, FileSessionStore } from '@a3s-lab/code';
    const [acl, root, workspace] = process.argv.slice(2);
    const agent = await Agent.create(acl, { cwd: root });
    fs.mkdirSync(root + '/gone');
    process.chdir(root + '/gone');
    fs.rmdirSync(root + '/gone');
    const said = (call) => call().catch((e) => [e instanceof CodeError, e.code, e.message]);
    const sessionStore = new FileSessionStore(root + '/kept');
    const session = await agent.sessionAsync(workspace, { sessionStore });
    console.log(JSON.stringify([
      session.workspace === workspace, String(await session.send('go')), (await agent.listStoredSessions(sessionStore)).length,
      await said(() => agent.sessionAsync('.')), await said(() => agent.sessionAsync(workspace, { sessionStore: new FileSessionStore('kept') })),
      await said(() => agent.listStoredSessions(new FileSessionStore('kept'))), await said(() => Agent.create(acl)),
    ]));
    await agent.close();`, [place.acl, place.root, place.workspace]).ended;
  assert.deepEqual([err, code], ['', 0]);
  const gone = 'the current folder of this process was deleted';
  const [rightPlace, text, kept, ...refused] = JSON.parse(out);
  assert.deepEqual([rightPlace, text, kept], [true, 'x', 1]);
  const cures = ['give an absolute path instead of "."', 'give an absolute path instead of "kept"', 'give an absolute path instead of "kept"', 'give the option cwd'];
  assert.deepEqual(refused, cures.map((cure) => [true, 'IO_ERROR', `${gone}: ${cure}, or call process.chdir before`]));
});
