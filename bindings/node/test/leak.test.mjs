// Nothing grows. A3S_CYCLES sets how many sessions are opened and closed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';

import { Place, collect, gc, handles, leavesNothing, until } from './place.mjs';

leavesNothing();

const CYCLES = Number(process.env.A3S_CYCLES ?? 10_000);
const resident = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
const descriptors = () => fs.readdirSync('/proc/self/fd').length;

/** Runs a cycle many times; memory and descriptors settle. */
async function settles(name, cycles, cycle, megabytes) {
  const warm = Math.ceil(cycles / 4);
  for (let i = 0; i < warm; i++) await cycle(i);
  gc();
  const [before, fds] = [resident(), descriptors()];
  for (let i = 0; i < cycles - warm; i++) await cycle(i);
  await until(async () => {
    gc();
    await new Promise(setImmediate);
    return handles().handles.session <= 1;
  }, 'sessions are left');
  const grown = resident() - before;
  assert.ok(grown < megabytes, `${name}: ${grown.toFixed(1)} MB more after ${cycles - warm} cycles`);
  assert.ok(descriptors() <= fds, `${name}: ${fds} descriptors before, ${descriptors()} after`);
}

test(`${CYCLES} sessions opened and closed`, async () => {
  const place = new Place();
  const agent = await place.agent('say x\nend');
  await settles('sessions', CYCLES, async (i) => {
    const session = i % 2 ? await agent.sessionAsync(place.workspace) : agent.session(place.workspace);
    await session.closeAsync();
  }, 24);
});

test(`${CYCLES / 10} runs, streams and tools`, async () => {
  const place = new Place();
  const agent = await place.agent('call mine {}\nend\nsay x y\nend');
  await settles('runs', CYCLES / 10, async (i) => {
    const session = await agent.sessionAsync(place.workspace, { permissionPolicy: { defaultDecision: 'allow' } });
    session.registerTool({ name: 'mine' }, () => 'x'.repeat(1000));
    if (i % 2) await collect(await session.stream('go'));
    else await session.send('go');
    await session.tool('mine');
    await session.closeAsync();
  }, 24);
});
