// Whole programs: processes that end in the middle, child processes beside a busy library, the
// examples and the guide.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import { PACKAGE, Place, ROOT, SLOW, program, until } from './place.mjs';

const OPEN = `
  import { Agent } from '@a3s-lab/code';
  const [acl, workspace] = process.argv.slice(2);
  const agent = await Agent.create(acl);
  const session = await agent.sessionAsync(workspace, { permissionPolicy: { defaultDecision: 'allow' } });
`;

async function run(place, code, options) {
  return program(OPEN + code, [place.acl, place.workspace], { cwd: place.root, ...options }).ended;
}

const alive = (pid) => fs.existsSync(`/proc/${pid}`) && !/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'));

const ENDS = {
  'by process.exit with an open stream': ['const s = await session.stream("go"); await s.next(); s.next(); process.exit(4);', 4],
  'by process.exit inside the loop': ['for await (const e of await session.stream("go")) if (e.type === "text_delta") process.exit(5);', 5],
  'by process.exit in a tool': ['session.registerTool({ name: "end" }, () => process.exit(6)); await session.tool("end");', 6],
  'by process.exit while an agent is opened': ['Agent.create(acl); process.exit(7);', 7],
  'by an exception': ['await session.stream("go"); session.send("x").catch(() => {}); process.exitCode = 8; setImmediate(() => { process.on("uncaughtException", () => process.exit(9)); throw new Error("x"); });', 9],
  'with everything open and nothing to wait for': ['session.registerTool({ name: "x" }, () => 1); globalThis.kept = await session.stream("go");', 0],
};

for (const [how, [code, want]] of Object.entries(ENDS)) {
  test(`the process ends ${how}`, async () => {
    const place = new Place();
    place.script(SLOW);
    for (let i = 0; i < 3; i++) {
      const { code: got, signal, err } = await run(place, code);
      assert.deepEqual([got, signal, err], [want, null, '']);
    }
  });
}

test('handlers of exit that come later see what is closed', async () => {
  const place = new Place();
  place.script('say hello\nend\nwait 60000\nend');
  const { code, out, err } = await run(place, `
    await session.send('go');
    const stream = await session.stream('go');
    process.on('exit', () => {
      const said = (call) => { try { return call(); } catch (e) { return e.code + ': ' + e.message; } };
      console.log(JSON.stringify({
        closed: [agent.isClosed(), session.isClosed()], history: session.history().length, tools: session.toolNames().length > 0,
        refused: [() => agent.session(workspace), () => session.registerTool({ name: 'x' }, () => 1), () => agent.registerLog(() => {})].map(said),
        ended: [() => session.close(), () => session.cancel(), () => stream.cancel(), () => stream.close()].map(said),
      }));
    });
    process.exit(0);`);
  assert.deepEqual([code, err], [0, '']);
  const { refused, ...rest } = JSON.parse(out);
  assert.deepEqual(rest, { closed: [true, true], history: 3, tools: true, ended: [null, false, null, null] });
  for (const words of refused) assert.match(words, /^SESSION_CLOSED: (?!.*0x)/);
});

test('operations under way keep the process alive, and only those', async () => {
  const place = new Place();
  place.script('say x\nend');
  const { code, out } = await run(place, 'session.registerTool({ name: "x" }, () => 1); session.bash("sleep 0.2; echo over").then((o) => process.stdout.write(o));');
  assert.deepEqual([code, out], [0, 'over\n']);
});

test('children of tools end with the process', async () => {
  const place = new Place();
  place.script('say x\nend');
  const { child, told, ended } = program(`${OPEN} session.bash("echo $$ > pid; sleep 60").catch(() => {}); setInterval(() => {}, 1000); process.stdin.once("data", () => process.exit(0)); console.log("ready");`,
    [place.acl, place.workspace]);
  const pid = path.join(place.workspace, 'pid');
  await until(() => told.out === 'ready\n' && fs.existsSync(pid) && fs.readFileSync(pid, 'utf8').endsWith('\n'), 'the command did not start');
  child.stdin.write('x');
  const { code, err } = await ended;
  assert.deepEqual([code, err], [0, '']);
  await until(() => !alive(fs.readFileSync(pid, 'utf8').trim()), 'the command still runs');
});

const SPAWNING = `
  import { spawn } from 'node:child_process';
  import { once } from 'node:events';
  let busy = true;
  const go = Promise.all([1, 2, 3].map(async () => { while (busy) await session.bash('true'); }));
  const turns = (async () => { while (busy) for await (const _ of await session.stream('go')); })();
  const until = Date.now() + 2500;
  let n = 0;
  while (Date.now() < until) {
    const children = Array.from({ length: 4 }, () => spawn('true'));
    const codes = await Promise.all(children.map((c) => once(c, 'exit')));
    if (codes.some(([code]) => code !== 0)) throw new Error('a child of ours failed');
    n += children.length;
  }
  busy = false;
  await Promise.all([go, turns]);
  await agent.close();
  console.log(n > 20 ? 'fine' : n);
`;

test('FFI: children of Node and of tools beside a busy library', async () => {
  const place = new Place();
  place.script(`${'say one two three four five\n'.repeat(200)}end\n`.repeat(400));
  const results = await Promise.all([run(place, SPAWNING), run(place, SPAWNING)]);
  for (const { code, signal, out, err } of results) assert.deepEqual([code, signal, out, err], [0, null, 'fine\n', '']);
});

test('the handler for child processes outlives the worker that loaded the library', async () => {
  const place = new Place();
  place.script(`${'say one two three four five\n'.repeat(200)}end\n`.repeat(400));
  const source = `
    import { Worker } from 'node:worker_threads';
    const w = new Worker('const { Agent } = require(' + JSON.stringify(${JSON.stringify(path.join(PACKAGE, 'lib', 'index.js'))}) + '); Agent.create("default_model = \\\\"offline/search\\\\"").then(() => process.exit(0));', { eval: true });
    const code = await new Promise((resolve) => { w.on('exit', resolve); });
    if (code !== 0) throw new Error('the worker failed');
  `;
  const { code, signal, out, err } = await program(source + OPEN + SPAWNING, [place.acl, place.workspace], { cwd: place.root }).ended;
  assert.deepEqual([code, signal, out, err], [0, null, 'fine\n', '']);
});

test('requiring the package loads nothing', async () => {
  const { out, err } = await program(`
    import fs from 'node:fs';
    import { EventType, CodeError, agentEventTypesV1 } from '@a3s-lab/code';
    agentEventTypesV1();
    console.log(fs.readFileSync('/proc/self/maps', 'utf8').split('\\n').filter((l) => /a3s\\.(so|node)/.test(l)).length);`).ended;
  assert.deepEqual([out, err], ['0\n', '']);
});

test('import and require give the same objects', async () => {
  const { out, err } = await program(`
    import { createRequire } from 'node:module';
    import * as esm from '@a3s-lab/code';
    const cjs = createRequire(import.meta.url)(${JSON.stringify(PACKAGE)});
    console.log(Object.keys(cjs).every((k) => cjs[k] === esm[k]) && Object.keys(esm).length === Object.keys(cjs).length);`).ended;
  assert.deepEqual([out, err], ['true\n', '']);
});

// --- the guide and the examples ---

const EXAMPLES = path.join(ROOT, 'examples', 'node');
const GUIDE = fs.readFileSync(path.join(PACKAGE, 'README.md'), 'utf8');
const examples = new Map(fs.readdirSync(EXAMPLES).filter((f) => f !== 'first_light.mjs').map((f) => [fs.readFileSync(path.join(EXAMPLES, f), 'utf8'), f]));
const blocks = new Map(); // those that are no example, by their section
const quoted = [];
for (const section of GUIDE.split(/^#+ /m)) {
  for (const [, code] of section.matchAll(/^```js\n([^]*?)^```/gm)) {
    if (examples.has(code)) quoted.push(examples.get(code));
    else blocks.set(section.slice(0, section.indexOf('\n')), code);
  }
}

// What each of the eight prints is tested beside those of the other languages, in tests/examples.
test('the guide quotes the examples as they are', () => assert.deepEqual(quoted.sort(), [...examples.values()].sort()));

const SCRIPTS = {
  '@a3s-lab/code': 'call read {"file_path": "a.txt"}\nend\nsay In a.txt.\nend\n',
};
const PRINTED = {
  '@a3s-lab/code': ['→ read', 'In a.txt.', 'completed'],
  'One answer': ['one', 'LLM_ERROR false'],
  'Your own parts': ['measure twice, in /'],
};

for (const [title, code] of blocks) {
  test(`the guide: ${title}`, async () => {
    const place = new Place();
    place.script(SCRIPTS[title] ?? 'say one\nend\nsay two\nend\n');
    fs.writeFileSync(path.join(place.root, 'a.txt'), 'hello\n');
    const { code: status, out, err } = await program(code, [], { cwd: place.root }).ended;
    assert.deepEqual([status, err], [0, '']);
    for (const line of PRINTED[title]) assert.ok(out.includes(line), `${line} is not in\n${out}`);
  });
}

test('the guide is covered', () => assert.deepEqual([...blocks.keys()], Object.keys(PRINTED)));

test('the first example has ten lines', () => {
  const lines = blocks.get('@a3s-lab/code').trim().split('\n').filter(Boolean);
  assert.ok(lines.length <= 10, `${lines.length} lines`);
});

const EXAMPLE = path.join(EXAMPLES, 'first_light.mjs');
const example = (args, cwd) => {
  try {
    return { code: 0, out: execFileSync(process.execPath, [EXAMPLE, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }), err: '' };
  } catch (e) {
    return { code: e.status, out: e.stdout, err: e.stderr };
  }
};

test('the example with a model', () => {
  const place = new Place();
  place.file('a.txt', 'hello\n');
  place.script('call read {"file_path": "a.txt"}\nend\nsay It says hello.\nend\n');
  const { code, out, err } = example(['What is in a.txt?', '--workspace', 'workspace', '--config', 'agent.acl'], place.root);
  assert.deepEqual([code, err], [0, '']);
  for (const line of ['→ read', 'It says hello.', 'completed']) assert.ok(out.includes(line), out);
  assert.equal(fs.readdirSync(path.join(place.workspace, '.a3s', 'sessions', 'v1', 'sessions')).filter((f) => f.startsWith('id_')).length, 1);
});

test('the example without a model', () => {
  const place = new Place();
  place.file('settings.py', 'def parse_configuration():\n    pass\n');
  const { code, out, err } = example(['Where is the configuration parsed?'], place.workspace);
  assert.deepEqual([code, err], [0, '']);
  assert.ok(out.includes('no --config') && out.includes('settings.py'), out);
});

test('the example says what is wrong', () => {
  const place = new Place();
  const { code, err } = example(['--config', 'none.acl'], place.root);
  assert.equal(code, 1);
  assert.match(err, /^CONFIG_ERROR: /);
});
