// Every public member of every class, from one table: called with odd arguments, on objects that
// are closed, and on what is no such object. A member that is in no table fails.
import assert from 'node:assert/strict';
import test from 'node:test';
import { inspect } from 'node:util';

import * as a3s from '@a3s-lab/code';
import { MapStore, MapWorkspace } from './hosts.mjs';
import { Place, collect, internal, leavesNothing } from './place.mjs';

leavesNothing();

const { Agent, CodeError, EventStream, FileSessionStore, MemorySessionStore, Registration } = a3s;
const { AGENT, SESSION } = internal('unbuilt');

const ODD = [undefined, null, 5, -1, NaN, Infinity, 5n, true, Symbol('s'), () => {}, [], [[]], {}, { a: 1 }, new Date(NaN), Buffer.from('x'), '', 'x', '\ud800', 'x\0y', new Proxy({}, {}), Object.create(null), new Map()];
const tool = { name: 'odd' };
const message = { role: 'user', content: [{ type: 'text', text: 'x' }] };

/**
 * For each member: good arguments, of which one after another is replaced by every odd value; and
 * what a closed object says: 'works', or a code. getters take no arguments.
 */
const OWNER = {
  registerTool: [[tool, () => 1], 'SESSION_CLOSED'],
  unregisterTool: [['odd'], 'works'],
  registerPermissionChecker: [[() => 'allow', { name: 'odd', timeoutMs: 5 }], 'SESSION_CLOSED'],
  registerContextProvider: [['odd', () => [], { timeoutMs: 5 }], 'SESSION_CLOSED'],
  registerCommand: [['odd', 'x', () => '', { usage: 'x', timeoutMs: 5 }], 'SESSION_CLOSED'],
  registerLog: [[() => {}, { name: 'odd', level: 'warn' }], 'SESSION_CLOSED'],
  registerExtension: [['log', { name: 'odd' }, { write() {} }], 'SESSION_CLOSED'],
  unregisterExtension: [['log', 'odd'], 'works'],
};
const CALL = { signal: null };
const MEMBERS = {
  Session: {
    ...OWNER,
    sessionId: 'getter', workspace: 'getter', initWarning: 'getter', tenantId: 'getter', principal: 'getter', agentTemplateId: 'getter', correlationId: 'getter',
    isClosed: [[], 'works'], history: [[], 'works'], traceEvents: [[], 'works'], toolNames: [[], 'works'], toolDefinitions: [[], 'works'], listCommands: [[], 'works'],
    send: [['x', [message], CALL], 'SESSION_CLOSED'], run: [['x', null, CALL], 'SESSION_CLOSED'], sendRequest: [[{ prompt: 'x' }, CALL], 'SESSION_CLOSED'],
    stream: [['x', [message], CALL], 'SESSION_CLOSED'], streamRequest: [[{ prompt: 'x' }, CALL], 'SESSION_CLOSED'],
    cancel: [[], 'works'], cancelAsync: [[], 'works'], cancelRun: [['x'], 'works'], close: [[], 'works'], closeAsync: [[CALL], 'works'], save: [[CALL], 'works'], // without a store there is nothing to do
    runs: [[], 'works'], runSnapshot: [['x'], 'works'], runEvents: [['x'], 'works'], runEventPage: [['x', 0, 5], 'works'], currentRun: [[], 'works'], activeTools: [[], 'works'],
    getArtifact: [['a3s://tool-output/read/x'], 'works'], getArtifactAsync: [['a3s://tool-output/read/x', CALL], 'works'],
    pendingConfirmations: [[], 'works'], confirmToolUse: [['x', true, 'x'], 'works'], cancelConfirmations: [[], 'works'],
    tool: [['ls', {}, CALL], 'SESSION_CLOSED'], readFile: [['a', { offset: 0, limit: 5 }], 'SESSION_CLOSED'], writeFile: [['a', 'x', CALL], 'SESSION_CLOSED'],
    editFile: [['a', 'x', 'y', false, CALL], 'SESSION_CLOSED'], ls: [['.', CALL], 'SESSION_CLOSED'], glob: [['*', CALL], 'SESSION_CLOSED'], grep: [['x', CALL], 'SESSION_CLOSED'], bash: [['true', CALL], 'SESSION_CLOSED'],
    [Symbol.asyncDispose]: [[], 'works'],
  },
  Agent: {
    ...OWNER,
    registerModel: [['odd', () => 'x', { context: 5, output: 5, toolCall: true, reasoning: true, stream: true, timeoutMs: 5 }], 'SESSION_CLOSED'],
    registerSessionStore: [['odd', new MapStore(), { timeoutMs: 5 }], 'SESSION_CLOSED'],
    registerWorkspace: [['odd', new MapWorkspace({}), { root: 'x', run: false, search: false }], 'SESSION_CLOSED'],
    registerTransport: [['odd', () => ({ status: 200 }), { timeoutMs: 5 }], 'SESSION_CLOSED'],
    session: [['.', {}], 'SESSION_CLOSED'], sessionAsync: [['.', {}, CALL], 'SESSION_CLOSED'],
    resumeSession: [['x', { sessionStore: new MemorySessionStore() }], 'SESSION_CLOSED'], resumeSessionAsync: [['x', { sessionStore: new MemorySessionStore() }, CALL], 'SESSION_CLOSED'],
    listSessions: [[], 'works'], listStoredSessions: [[new FileSessionStore('none'), CALL], 'works'], closeSession: [['x', CALL], 'works'],
    close: [[], 'works'], isClosed: [[], 'works'], warnings: [[], 'works'], [Symbol.asyncDispose]: [[], 'works'],
  },
  EventStream: {
    next: [[], 'works'], batches: [[], 'works'], return: [[5], 'works'], throw: [[new CodeErrorLike()], 'throws'], cancel: [['x'], 'works'], close: [[], 'works'], closed: 'getter',
    [Symbol.asyncIterator]: [[], 'works'], [Symbol.asyncDispose]: [[], 'works'],
  },
  Registration: { close: [[], 'works'], [Symbol.dispose]: [[], 'works'] },
};

function CodeErrorLike() {}

/** All members of a class, inherited ones included. */
function members(Class, without = []) {
  const names = new Set();
  for (let p = Class.prototype; p !== Object.prototype; p = Object.getPrototypeOf(p)) Reflect.ownKeys(p).forEach((k) => names.add(k));
  ['constructor', ...without].forEach((k) => names.delete(k));
  return names;
}

for (const [name, table] of Object.entries(MEMBERS)) {
  test(`the table of ${name} is whole`, () => {
    const there = members(a3s[name], name === 'Agent' ? AGENT : name === 'Session' ? SESSION : []);
    assert.deepEqual(new Set(Reflect.ownKeys(table)), there);
  });
}

const words = (name, args, err) => `${String(name)}(${args.map((a) => inspect(a)).join(', ')}): ${err?.stack ?? inspect(err)}`;

/** What is given back is closed again, so that the next call finds the same state. */
async function drop(value) {
  if (value instanceof EventStream) await collect(value);
  else if (value instanceof a3s.Session) await value.closeAsync();
  else if (value instanceof Registration) value.close();
}

async function odd(object, name, good) {
  for (let at = 0; at < good.length; at++) {
    for (const value of ODD) {
      const args = good.with(at, value);
      try {
        await drop(await object[name](...args));
      } catch (err) {
        assert.ok(err instanceof CodeError && err.code !== 'INTERNAL_ERROR' && typeof err.kind === 'string' && typeof err.details === 'object', words(name, args, err));
      }
    }
  }
}

test('odd arguments: a session', async () => {
  const session = await new Place().session('say x\nend\n'.repeat(900));
  for (const [name, row] of Object.entries(MEMBERS.Session)) {
    if (row === 'getter' || name === 'close' || name === 'closeAsync') continue;
    await odd(session, name, row[0]);
  }
  assert.equal((await session.send('x')).text, 'x');
});

test('odd arguments: an agent', async () => {
  const agent = await new Place().agent('say x\nend');
  for (const [name, row] of Object.entries(MEMBERS.Agent)) {
    if (row === 'getter' || name === 'close') continue;
    await odd(agent, name, row[0]);
  }
  assert.equal(agent.isClosed(), false);
});

test('odd arguments: a stream', async () => {
  const session = await new Place().session('say x\nend\n'.repeat(900));
  for (const [name, row] of Object.entries(MEMBERS.EventStream)) {
    if (row === 'getter') continue;
    for (const value of ODD) {
      const stream = await session.stream('go');
      const call = async () => stream[name](value);
      await call().catch((err) => assert.ok(err instanceof CodeError || name === 'throw', words(name, [value], err)));
      if (!stream.closed) await collect(stream);
      await session.cancelAsync();
      while ((await session.currentRun()) !== null) await new Promise(setImmediate);
    }
  }
  for (const reason of [...ODD, 'x'.repeat(1 << 20), new Error('why')]) { // what a signal was aborted with
    const controller = new AbortController();
    const other = await session.stream('go', null, { signal: controller.signal });
    controller.abort(reason);
    await collect(other);
  }
});

test('closed objects', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const session = await agent.sessionAsync(place.workspace);
  const stream = await session.stream('go');
  const registration = session.registerLog(() => {});
  const objects = { Session: session, Agent: agent, EventStream: stream, Registration: registration };
  for (const [name, table] of Object.entries(MEMBERS)) {
    const object = objects[name];
    await (object.closeAsync?.() ?? object.close());
    await (object.closeAsync?.() ?? object.close());
    for (const member of Reflect.ownKeys(table)) {
      if (table[member] === 'getter') {
        assert.notEqual(object[member], undefined, `${name}.${String(member)}`);
        continue;
      }
      const [args, want] = table[member];
      let got = 'works';
      try {
        await object[member](...args);
      } catch (err) {
        got = err instanceof CodeError ? err.code : 'throws';
      }
      assert.equal(got, want, `${name}.${String(member)} of a closed object`);
    }
  }
});

test('what is no such object', async () => {
  for (const [name, table] of Object.entries(MEMBERS)) {
    for (const member of Reflect.ownKeys(table)) {
      for (const self of [undefined, null, 5, {}, Object.create(a3s[name].prototype), new Proxy(Object.create(a3s[name].prototype), {})]) {
        const call = async () => {
          const { get, value } = Object.getOwnPropertyDescriptor(owner(a3s[name].prototype, member), member);
          return (get ?? value).apply(self, table[member] === 'getter' ? [] : table[member][0]);
        };
        await call().catch((err) => assert.ok(err instanceof Error, `${name}.${String(member)}`));
      }
    }
  }
});

function owner(prototype, member) {
  return Object.hasOwn(prototype, member) ? prototype : owner(Object.getPrototypeOf(prototype), member);
}

test('classes that only the library makes', () => {
  for (const Class of [Agent, a3s.Session, EventStream]) for (const args of [[], [5], [{}, 5n, {}]]) assert.throws(() => new Class(...args), /./);
});

test('functions and values of the module', () => {
  for (const value of ODD) {
    for (const make of [() => new FileSessionStore(value), () => new a3s.LocalWorkspaceBackend(value), () => new a3s.ToolResult(value ?? undefined), () => new a3s.AgentEvent(value, value), () => new a3s.ExtensionError(value, undefined)]) {
      try {
        make();
      } catch (err) {
        assert.ok(err instanceof TypeError, words('constructor', [value], err));
      }
    }
    try {
      a3s.formatVerificationSummary(value);
    } catch (err) {
      assert.ok(err instanceof CodeError, words('formatVerificationSummary', [value], err));
    }
  }
});

test('a copy for another thread is no such object', async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  const session = await agent.sessionAsync(place.workspace);
  for (const value of [agent, session, await session.stream('go'), agent.registerLog(() => {})]) {
    const copy = structuredClone(value); // what postMessage sends
    assert.ok(!(copy instanceof value.constructor));
    assert.throws(() => copy.close(), TypeError);
  }
});
