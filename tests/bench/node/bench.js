'use strict';
// The figures of the Node binding. usage: bench.js PART DIR N [PACER]
//
// DIR holds agent.acl and workspace/. Prints lines "name value ...", values in seconds, bytes or
// events a second.

const fs = require('node:fs');
const path = require('node:path');

const LIB = path.resolve(__dirname, '..', '..', '..', 'bindings', 'node');

const seconds = () => Number(process.hrtime.bigint()) / 1e9;

function quantiles(name, values) {
  values.sort((a, b) => a - b);
  console.log(name, values[Math.floor(values.length / 2)], values[Math.floor(values.length * 0.99)]);
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

function status(name) {
  const line = fs.readFileSync('/proc/self/status', 'utf8').split('\n').find((l) => l.startsWith(`${name}:`));
  return Number.parseInt(line.slice(name.length + 1), 10);
}

/** Options under which every delta is an event of its own and, if asked, all are kept. */
function unmerged(events, sessionId) {
  return {
    sessionId,
    planningMode: 'disabled',
    permissionPolicy: { defaultDecision: 'allow' },
    retentionLimits: events ? { unbounded: true } : undefined,
    hostEnv: { sequentialIdPrefix: 'run-0190a3f0-0000-7000-8000-000000000' },
  };
}

/**
 * Agent and sessions as plain handles, for what the binding does not show: a run that has ended
 * and is read only then, and the bytes of its events. Its own stream reads them.
 */
class Plain {
  constructor(directory) {
    this.native = require(path.join(LIB, 'lib', 'native.js')).library();
    this.EventStream = require(path.join(LIB, 'lib', 'stream.js')).EventStream;
    this.sessionRequest = require(path.join(LIB, 'lib', 'options.js')).sessionRequest;
    this.workspace = path.join(directory, 'workspace');
    this.agent = this.native.agentOpen(JSON.stringify({ acl_path: path.join(directory, 'agent.acl'), cwd: directory }));
  }

  session(options) {
    return this.native.sessionOpen(this.agent, this.sessionRequest({ workspace: this.workspace }, options));
  }

  start(session) {
    return this.native.runStart(session, '{"prompt": "go on"}');
  }

  finished(session) {
    const run = this.start(session);
    this.native.runWait(run, -1);
    return run;
  }

  stream(run) {
    return new this.EventStream(undefined, run, undefined);
  }

  close() {
    this.native.close(this.agent, -1);
  }
}

/** All batches as texts; use gets each. */
function raw(plain, run, n, use) {
  const { native } = plain;
  const reader = native.readerOpen(native.streamOpen(run, ''));
  const begin = seconds();
  let last = begin;
  for (let text = native.readerRead(reader); text !== null; text = native.readerRead(reader)) {
    use(text);
    if (text.length < 140_000) last = seconds(); // the terminal event holds the whole text again: it does not count
  }
  native.readerClose(reader);
  return n / (last - begin);
}

/** Type and text of every event; the clock stops at the last delta. */
async function parsed(stream, n) {
  const begin = seconds();
  let seen = 0;
  let length = 0;
  let took;
  for await (const event of stream) {
    if (event.type === 'text_delta') {
      length += event.text.length;
      if (++seen === n) took = seconds() - begin;
    }
  }
  if (length < n) throw new Error(`${seen} events of ${n} came`);
  return n / took;
}

const parts = {
  load() {
    require(LIB);
    const native = require(path.join(LIB, 'lib', 'native.js'));
    const rss = status('VmRSS');
    const threads = status('Threads');
    const begin = seconds();
    native.library().stats(0n);
    console.log('load', seconds() - begin);
    console.log('loaded', (status('VmRSS') - rss) * 1024, status('Threads') - threads);
  },

  async first(directory) {
    const { Agent } = require(LIB);
    const agent = await Agent.create(path.join(directory, 'agent.acl'));
    const session = await agent.sessionAsync(path.join(directory, 'workspace'));
    await (await session.stream('go on')).next();
    fs.writeSync(1, 'first\n');
    await agent.close();
  },

  async memory(directory, n) {
    const { Agent } = require(LIB);
    const resident = () => {
      globalThis.gc();
      return status('VmRSS') * 1024;
    };
    const workspace = path.join(directory, 'workspace');
    const agent = await Agent.create(path.join(directory, 'agent.acl'));
    const warm = agent.session(workspace);
    await warm.send('go on');
    const before = resident();
    const sessions = Array.from({ length: n }, () => agent.session(workspace));
    console.log('fresh', (resident() - before) / n);
    for (const session of sessions) await session.send('go on');
    console.log('used', (resident() - before) / n);
    await agent.close();
  },

  call(directory, n, pacer) {
    const plain = new Plain(directory);
    const { native } = plain;
    const session = plain.session({});
    const stream = native.streamOpen(session, '');
    const perCall = (name, times, fn) => {
      const each = [];
      for (let round = 0; round < 51; round++) {
        const begin = seconds();
        for (let i = 0; i < times; i++) fn();
        each.push((seconds() - begin) / times);
      }
      quantiles(name, each);
    };
    const { nothing } = require(pacer);
    perCall('empty', n, () => nothing(stream));
    perCall('abi_version', n, () => native.abiVersion());
    perCall('stream_wake', n, () => native.streamWake(stream));
    perCall('session_info', n / 10, () => native.call(session, 'session.info', '{}', 0));
    plain.close();
  },

  async deliver(directory, n) {
    const plain = new Plain(directory);
    const fresh = async (fn) => { // the binding's stream ends its run with itself
      const session = plain.session(unmerged(true));
      const rate = await fn(plain.finished(session));
      plain.native.close(session, -1);
      return rate;
    };
    const rates = async (times, fn) => {
      const all = [];
      for (let i = 0; i < times; i++) all.push(await fresh(fn));
      return median(all);
    };
    console.log('raw', await rates(3, (run) => raw(plain, run, n, (text) => text?.length)));
    console.log('floor', await rates(3, (run) => raw(plain, run, n, (text) => text && JSON.parse(text))));
    console.log('async', await rates(3, (run) => parsed(plain.stream(run), n)));
    plain.close();
  },

  async many(directory, n) {
    const plain = new Plain(directory);
    const rates = [];
    for (let round = 0; round < 3; round++) {
      const sessions = Array.from({ length: 100 }, (_, i) => plain.session(unmerged(true, `many-${round}-${String(i).padStart(29, '0')}`)));
      const streams = sessions.map((session) => plain.stream(plain.finished(session)));
      const begin = seconds();
      await Promise.all(streams.map((stream) => parsed(stream, n)));
      rates.push((100 * n) / (seconds() - begin));
      for (const session of sessions) plain.native.close(session, -1);
    }
    console.log('many', median(rates));
    plain.close();
  },

  async wake(directory, n, pacerFile) {
    const plain = new Plain(directory);
    const { native } = plain;
    const pacer = require(pacerFile);
    const control = native.readerOpen(native.streamOpen(plain.agent, ''));
    native.hostRegister(plain.agent, 'tool', '{"name": "pace", "description": "Paces.", "read_only": true}');
    const stream = plain.stream(plain.start(plain.session(unmerged(false))));
    let request;
    while (request === undefined) {
      const text = native.readerRead(control);
      request = text && JSON.parse(text).find((f) => f.type === 'host_request')?.payload.request;
    }
    pacer.answer(plain.agent, request, n);
    const late = [];
    for await (const event of stream) {
      if (event.type === 'tool_output_delta') late.push(pacer.late(Number.parseInt(event.text, 10)));
    }
    pacer.join();
    quantiles('async', late);
    native.readerClose(control);

    const bare = [];
    const woken = native.streamOpen(plain.session({}), '');
    const reader = native.readerOpen(woken);
    pacer.wake(woken, n);
    while (bare.length < n) {
      await new Promise((resolve) => {
        native.readerWait(reader, () => {
          native.readerRead(reader);
          bare.push(pacer.late(bare.length));
          native.readerRead(reader); // nothing more: lets the descriptor rest
          resolve();
        });
      });
      pacer.seen();
    }
    pacer.join();
    quantiles('bare_async', bare);
    native.readerClose(reader);
    plain.close();

    const plainly = [];
    const socket = new (require('node:net').Socket)({ fd: pacer.socket(n) });
    for await (const bytes of socket) {
      for (let i = 0; i < bytes.length; i += 4) plainly.push(pacer.late(bytes.readInt32LE(i)));
    }
    pacer.join();
    quantiles('floor_async', plainly);
  },

  async host(directory, n) {
    const { Agent } = require(LIB);
    const workspace = path.join(directory, 'workspace');
    const spec = { name: 'tick', description: 'Ticks.', parameters: { type: 'object' }, readOnly: true };
    for (const kind of ['sync', 'async']) {
      let at = [];
      const tick = () => {
        at.push(seconds());
        return 'ticked';
      };
      const agent = await Agent.create(path.join(directory, 'agent.acl'));
      agent.registerTool(spec, kind === 'sync' ? tick : async () => tick());
      const each = [];
      for (let run = 0; run <= n; run++) {
        at = [];
        const session = agent.session(workspace, unmerged(false));
        await session.send('go on');
        await session.closeAsync();
        for (let i = 1; i < at.length && run > 0; i++) each.push(at[i] - at[i - 1]); // the first one warms up
      }
      quantiles(kind, each);
      await agent.close();
    }
  },
};

const [part, directory, n, ...rest] = process.argv.slice(2);
Promise.resolve(parts[part](directory, Number(n), ...rest)).catch((err) => {
  console.error(err);
  process.exitCode = 1;
});
