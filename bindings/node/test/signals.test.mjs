// Every call that may wait takes a signal: one that is aborted before or meanwhile, and what is none.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Agent, CodeError, EventStream } from '@a3s-lab/code';
import { MapStore } from './hosts.mjs';
import { ALL, Place, SLOW, handles, leavesNothing, until } from './place.mjs';

leavesNothing();

/** Everything there is to call, with the options of the call last. */
async function calls() {
  const place = new Place();
  const agent = await place.agent(SLOW);
  const store = new MapStore();
  const sessionStore = agent.registerSessionStore('map', store);
  const session = await agent.sessionAsync(place.workspace, { sessionStore, permissionPolicy: ALL });
  const table = {
    create: (o) => Agent.create(place.acl, o).then((a) => a.close()),
    sessionAsync: (o) => agent.sessionAsync(place.workspace, {}, o).then((s) => s.closeAsync()),
    resumeSessionAsync: (o) => agent.resumeSessionAsync('none', { sessionStore }, o),
    listStoredSessions: (o) => agent.listStoredSessions(sessionStore, o),
    closeSession: (o) => agent.closeSession('none', o),
    send: (o) => session.send('go', null, o),
    run: (o) => session.run('go', null, o),
    sendRequest: (o) => session.sendRequest({ prompt: 'go' }, o),
    stream: (o) => session.stream('go', null, o),
    streamRequest: (o) => session.streamRequest({ prompt: 'go' }, o),
    save: (o) => session.save(o),
    getArtifactAsync: (o) => session.getArtifactAsync('a3s://tool-output/read/x', o),
    tool: (o) => session.tool('ls', {}, o),
    readFile: (o) => session.readFile('a', o),
    writeFile: (o) => session.writeFile('a', 'x', o),
    editFile: (o) => session.editFile('a', 'x', 'y', false, o),
    ls: (o) => session.ls('.', o),
    glob: (o) => session.glob('*', o),
    grep: (o) => session.grep('x', o),
    bash: (o) => session.bash('true', o),
    closeAsync: (o) => session.closeAsync(o),
  };
  return { place, agent, store, sessionStore, session, table };
}

test('a signal that is aborted already, and what is none', async () => {
  const { table, session } = await calls();
  const why = new Error('why');
  for (const [name, call] of Object.entries(table)) {
    await assert.rejects(call({ signal: AbortSignal.abort(why) }), (err) => err instanceof CodeError && err.code === 'CANCELLED' && err.cause === why, name);
    await assert.rejects(call({ signal: 5 }), (err) => err instanceof TypeError && err.code === 'INVALID_REQUEST', name);
    if (name !== 'create') await assert.rejects(call(new AbortController().signal), (err) => err instanceof TypeError && /\{(.*, )?signal\}/.test(err.message), name);
  }
  assert.deepEqual([session.isClosed(), (await session.runs()).length], [false, 0]);
});

test('a signal that is aborted meanwhile', async () => {
  const { place, agent, store, sessionStore, session, table } = await calls();
  const aborted = async (name, call) => {
    const controller = new AbortController();
    const waiting = call({ signal: controller.signal });
    setImmediate(() => controller.abort());
    await assert.rejects(waiting, (err) => err.code === 'CANCELLED' && err.cause === controller.signal.reason, name);
  };
  await aborted('send', table.send);
  const stream = await session.stream('go', null, { signal: AbortSignal.timeout(20) });
  assert.ok(stream instanceof EventStream);
  let last;
  for await (const event of stream) last = event;
  assert.deepEqual([last.type, last.payload.code], ['error', 'CANCELLED']);
  await aborted('bash', (o) => session.bash('sleep 60', o));
  store.list = () => new Promise(() => {});
  await aborted('listStoredSessions', table.listStoredSessions);
  store.load = () => new Promise(() => {});
  await aborted('resumeSessionAsync', table.resumeSessionAsync);
  const append = store.append;
  store.append = () => new Promise(() => {});
  await aborted('sessionAsync', (o) => agent.sessionAsync(place.workspace, { sessionStore, sessionId: 'other' }, o));
  store.append = append;
});

test('an opening that was given up is closed again', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const count = () => handles().handles;
  const { agent: agents, session: sessions = 0 } = count();
  for (const open of [(o) => Agent.create(place.acl, o), (o) => agent.sessionAsync(place.workspace, {}, o)]) {
    const controller = new AbortController();
    const opening = open({ signal: controller.signal });
    controller.abort();
    await assert.rejects(opening, { code: 'CANCELLED' });
  }
  await until(() => count().agent === agents && (count().session ?? 0) === sessions, 'something is left open');
});
