// Streams: iteration, leaving early, aborting, many at once.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import test, { mock } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { AgentEvent, EventStream, EventType } from '@a3s-lab/code';
import { Place, SLOW, collect, gc, handles, leavesNothing, types, until } from './place.mjs';

leavesNothing();

test('next gives value and done', async () => {
  const session = await new Place().session('say a\nend');
  const stream = await session.stream('go');
  assert.ok(stream instanceof EventStream && !stream.closed);
  const seen = [];
  for (let r = await stream.next(); !r.done; r = await stream.next()) seen.push(r.value);
  assert.deepEqual(types(seen), ['agent_start', 'turn_start', 'text_delta', 'turn_end', 'agent_end']);
  assert.ok(seen.every((e) => e instanceof AgentEvent));
  assert.deepEqual([await stream.next(), await stream.next(), stream.closed], [{ value: undefined, done: true }, { value: undefined, done: true }, true]);
});

test('events asked for at once come in order', async () => {
  const session = await new Place().session('say a b c d\nwait 20\nsay e\nend');
  const stream = await session.stream('go');
  const asked = await Promise.all(Array.from({ length: 12 }, () => stream.next()));
  const seen = asked.filter((r) => !r.done).map((r) => r.value.sequence);
  assert.deepEqual(seen, seen.map((_, i) => i));
  assert.equal(asked.at(-1).done, true);
});

test('batches are the same events', async () => {
  const session = await new Place().session(`${'say one two\n'.repeat(300)}end\n`.repeat(2), { hostEnv: { sequentialIdPrefix: 'x' } });
  const all = [];
  let lists = 0;
  for await (const batch of (await session.stream('go')).batches()) {
    assert.ok(Array.isArray(batch) && batch.length > 0);
    all.push(...batch);
    lists++;
  }
  assert.deepEqual(all.map((e) => e.sequence), all.map((_, i) => i));
  assert.ok(lists < all.length && all.at(-1).type === 'agent_end');
  const left = await session.stream('go');
  for await (const batch of left.batches()) if (batch.length > 0) break;
  assert.equal(left.closed, true);
});

test('leaving the loop leaves the run', async () => {
  const session = await new Place().session('say a\nwait 50\nsay b\nend');
  const stream = await session.stream('go');
  for await (const event of stream) {
    assert.equal(event.type, 'agent_start');
    break;
  }
  assert.ok(stream.closed);
  await until(async () => (await session.currentRun()) === null, 'the run did not end');
  assert.equal((await session.runs())[0].status, 'completed');
});

test('return, throw, close and dispose end the stream', async () => {
  for (const end of [(s) => s.return(7), (s) => s.throw(new Error('mine')).catch((e) => e.message), (s) => s.close(), (s) => s[Symbol.asyncDispose]()]) {
    const session = await new Place().session(SLOW);
    const stream = await session.stream('go');
    await stream.next();
    const waits = (async () => { for await (const _ of stream); return 'over'; })();
    await sleep(5);
    const given = await end(stream);
    assert.equal(await waits, 'over'); // who waits for an event is let go
    stream.close();
    assert.ok(stream.closed);
    if (given !== undefined) assert.deepEqual(given, given === 'mine' ? 'mine' : { value: 7, done: true });
    assert.equal(session.cancel(), true);
  }
});

test('cancel of the stream', async () => {
  const session = await new Place().session(SLOW);
  const stream = await session.stream('go');
  const seen = [];
  for await (const event of stream) {
    seen.push(event);
    if (event.type === EventType.TEXT_DELTA) stream.cancel('enough');
  }
  assert.equal(seen.at(-1).payload.code, 'CANCELLED');
  stream.cancel(); // does nothing now
});

test('a signal cancels the run of a stream', async () => {
  const session = await new Place().session(SLOW);
  const controller = new AbortController();
  const stream = await session.stream('go', null, { signal: controller.signal });
  await stream.next();
  controller.abort(new Error('no longer wanted'));
  const rest = await collect(stream);
  assert.deepEqual([rest.at(-1).type, rest.at(-1).payload.code], ['error', 'CANCELLED']);
  await assert.rejects(session.stream('go', null, { signal: controller.signal }), { code: 'CANCELLED', cause: controller.signal.reason });
});

test('a signal cancels an operation, and only its own', async () => {
  const place = new Place();
  const session = await place.session(`${SLOW}\n${SLOW}`);
  const controller = new AbortController();
  const [sent, kept] = [session.send('go', null, { signal: controller.signal }), session.bash('sleep 0.2; echo kept')];
  const slept = session.bash('sleep 60', { signal: controller.signal });
  await until(async () => (await session.currentRun()) !== null, 'no run began');
  controller.abort();
  await assert.rejects(sent, (err) => err.code === 'CANCELLED' && err.cause === controller.signal.reason && err.cause.name === 'AbortError');
  const outcome = await slept.catch((err) => err.code); // a cancelled tool may be a result
  assert.ok(outcome === 'CANCELLED' || typeof outcome === 'string');
  assert.match(await kept, /kept/);
  await assert.rejects(session.save({ signal: controller.signal }), { code: 'CANCELLED' });
  assert.equal((await session.send('again')).text, 'after');
});

test('a time-out signal', async () => {
  const session = await new Place().session(SLOW);
  await assert.rejects(session.send('go', undefined, { signal: AbortSignal.timeout(50) }), (err) => err.code === 'CANCELLED' && err.cause.name === 'TimeoutError');
});

test('a signal keeps no listener', async () => {
  const session = await new Place().session('say a\nend\n'.repeat(20));
  let listeners = 0;
  const controller = new AbortController();
  const { signal } = controller;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...args) => { listeners++; add(...args); };
  signal.removeEventListener = (...args) => { listeners--; remove(...args); };
  for (let i = 0; i < 5; i++) await session.send('go', null, { signal });
  for (let i = 0; i < 5; i++) await collect(await session.stream('go', null, { signal }));
  assert.equal(listeners, 0);
});

test('many follow one signal with one listener', async () => {
  const session = await new Place().session('wait 50\nsay a\nend');
  const { signal } = new AbortController();
  const warnings = [];
  const warn = (w) => warnings.push(w.name);
  process.on('warning', warn);
  const all = [session.send('go', null, { signal }), ...Array.from({ length: 30 }, () => session.bash('sleep 0.02', { signal }))];
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  await Promise.all(all);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  process.off('warning', warn);
  assert.deepEqual(warnings, []);
});

test('timers that a test has put in the place of those of Node', async () => {
  const place = new Place();
  const agent = await place.agent('say unused\nend');
  agent.registerModel('wordy', async function* () { for (let i = 0; i < 1000; i++) yield* [{ text: 'a' }, { reasoning: 'b' }]; });
  const session = await agent.sessionAsync(place.workspace, { model: 'host/wordy' });
  const stream = await session.stream('go');
  await until(async () => (await session.currentRun()) === null, 'the run goes on');
  mock.timers.enable();
  try {
    assert.equal((await collect(stream)).at(-1).type, 'agent_end');
  } finally {
    mock.timers.reset();
  }
});

test('many streams at once', async () => {
  const place = new Place();
  const agent = await place.agent(`${'say one two three\n'.repeat(20)}end`);
  const texts = await Promise.all(Array.from({ length: 50 }, async () => {
    const session = await agent.sessionAsync(place.workspace);
    let text = '';
    for await (const event of await session.stream('go')) if (event.type === EventType.TEXT_DELTA) text += event.text;
    return text;
  }));
  assert.equal(new Set(texts).size, 1);
  assert.equal(texts[0].match(/one/g).length, 20);
});

test('an event larger than the buffer', async () => {
  const text = 'ä"\\'.repeat(700_000);
  const session = await new Place().session(`say ${text}\nend`);
  const events = await collect(await session.stream('go'));
  assert.equal(events.filter((e) => e.type === 'text_delta').map((e) => e.text).join(''), text);
  assert.equal(events.at(-1).text, text);
});

test('a fast run does not starve the other callbacks', async () => {
  const session = await new Place().session(`${'say x y\nthink z\n'.repeat(4000)}end`, { stallTimeoutMs: 60_000 });
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  let n = 0;
  for await (const event of await session.stream('go')) n += event.version;
  clearInterval(timer);
  assert.ok(n > 4000 && ticks > 0, `${n} events, ${ticks} ticks`);
});

test('a forgotten stream is closed, its run goes on', async () => {
  const session = await new Place().session('say a\nwait 30\nsay b\nend');
  await (await session.stream('go')).next();
  await until(async () => {
    gc();
    await sleep(1);
    return handles().handles.stream === 0;
  }, 'the stream is still open');
  await until(async () => (await session.runs())[0].status === 'completed', 'the run did not end');
});
