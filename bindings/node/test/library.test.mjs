// Finding, loading and refusing the native library and the addon.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { CodeError } from '@a3s-lab/code';
import { PACKAGE, ROOT, internal, program } from './place.mjs';

const { candidates, explain, howToGet } = internal('native');
const dir = () => fs.mkdtempSync(path.join(os.tmpdir(), 'a3s-lib-'));

/** What Agent.create says with another library in its place. */
async function refusal(env) {
  const { out, err } = await program(`
    import { Agent, CodeError } from '@a3s-lab/code';
    const seen = [];
    for (let i = 0; i < 2; i++) await Agent.create('default_model = "offline/search"').then(() => seen.push('opened'), (e) => seen.push([e instanceof CodeError, e.code, e.op, e.message]));
    console.log(JSON.stringify(seen));`, [], { env }).ended;
  assert.equal(err, '');
  const [first, second] = JSON.parse(out);
  assert.deepEqual(first, second); // it stays refused, and does not crash
  return first;
}

/** A library with the functions of the header, each made of the given C. */
function stub(functions) {
  const at = dir();
  const names = [...fs.readFileSync(path.join(PACKAGE, 'src', 'generated.h'), 'utf8').matchAll(/^\tF\((\w+)\)/gm)].map((m) => m[1]);
  const source = names.filter((n) => functions[n] !== null).map((n) => functions[n] ?? `int a3s_${n}(void) { return 0; }`).join('\n');
  fs.writeFileSync(path.join(at, 'stub.c'), `#include <stddef.h>\n${source}\n`);
  execFileSync('cc', ['-shared', '-fPIC', '-w', '-o', path.join(at, 'liba3s.so.1'), path.join(at, 'stub.c')]);
  return at;
}

test('a named library is the only one', async () => {
  const at = dir();
  const [isCodeError, code, op, message] = await refusal({ A3S_LIB: at });
  assert.deepEqual([isCodeError, code, op], [true, 'LIBRARY_NOT_FOUND', 'library.load']);
  assert.ok(message.includes('A3S_LIB names no file') && message.endsWith(`\n  ${at}/liba3s.so.1`), message);
});

test('a file that is no library', async () => {
  const file = path.join(dir(), 'liba3s.so.1');
  fs.writeFileSync(file, 'no library');
  const [, code, , message] = await refusal({ A3S_LIB: file });
  assert.equal(code, 'LIBRARY_NOT_FOUND');
  assert.match(message, /cannot be loaded/);
});

test('a library that lacks a function', async () => {
  const [, code, , message] = await refusal({ A3S_LIB: stub({ host_chunk: null }) });
  assert.equal(code, 'LIBRARY_NOT_FOUND');
  assert.match(message, /has no function a3s_host_chunk/);
});

test('another ABI is refused', async () => {
  const at = stub({ abi_check: 'int a3s_abi_check(unsigned v) { return -10; }', abi_version: 'unsigned a3s_abi_version(void) { return 2 << 16 | 7; }' });
  const [isCodeError, code, , message] = await refusal({ A3S_LIB: at });
  assert.deepEqual([isCodeError, code], [true, 'ABI_MISMATCH']);
  assert.match(message, /ABI 2\.7 and this package needs 1\.\d+/);
});

test('a failure without words', async () => {
  const at = stub({
    agent_open: 'int a3s_agent_open(const char *r, size_t n, void *out) { return -99; }',
    last_error: 'int a3s_last_error(void *out) { return 0; }',
    status_name: 'const char *a3s_status_name(int s) { return "E_INTERNAL"; }',
  });
  const [, code, , message] = await refusal({ A3S_LIB: at });
  assert.equal(code, 'INTERNAL_ERROR');
  assert.match(message, /E_INTERNAL without an error text/);
});

test('where the library is looked for', () => {
  const before = process.env.A3S_LIB;
  try {
    delete process.env.A3S_LIB;
    assert.deepEqual(candidates('/beside'), ['/beside/liba3s.so.1', path.join(ROOT, 'build', 'liba3s.so.1')]);
    process.env.A3S_LIB = '/named.so';
    assert.deepEqual(candidates('/beside'), ['/named.so']);
    process.env.A3S_LIB = os.tmpdir();
    assert.deepEqual(candidates('/beside'), [path.join(os.tmpdir(), 'liba3s.so.1')]);
  } finally {
    if (before === undefined) delete process.env.A3S_LIB;
    else process.env.A3S_LIB = before;
  }
});

test('musl is named', () => {
  const err = explain(new Error('Error relocating liba3s.so.1'), null);
  assert.ok(err instanceof CodeError && /musl/.test(err.message) && err.code === 'LIBRARY_NOT_FOUND');
  assert.match(explain(new Error('as it is'), '2.36').message, /^as it is$/);
});

test('a platform without a published package is told how to make one', () => {
  assert.match(howToGet('@a3s-lab/code-linux-arm64-gnu'), /none is published for this platform: .*pack\.js --out DIR, and then npm install DIR/);
  assert.match(howToGet('@a3s-lab/code-linux-x64-gnu'), /without --omit=optional/);
});

test('the package alone: an addon beside its library, or a clear word', async () => {
  const at = dir();
  const lib = path.join(at, 'node_modules', '@a3s-lab', 'code', 'lib');
  fs.cpSync(path.join(PACKAGE, 'lib'), lib, { recursive: true });
  fs.copyFileSync(path.join(PACKAGE, 'package.json'), path.join(lib, '..', 'package.json'));
  const program = path.join(at, 'program.js');
  fs.writeFileSync(program, `require('./node_modules/@a3s-lab/code/lib/index.js').Agent.create('default_model = "offline/search"').then((a) => a.close()).then(() => console.log('opened'), (e) => console.log(e.code + ': ' + e.message));`);
  const run = (...flags) => execFileSync(process.execPath, [...flags, program], { encoding: 'utf8', env: { ...process.env, A3S_LIB: '' } });
  assert.match(run(), /^LIBRARY_NOT_FOUND: the native addon was not found .*--omit=optional.*@a3s-lab\/code-linux-x64-gnu/s);
  // npm leaves the platform package out where the C library is musl.
  const musl = path.join(at, 'musl.js');
  fs.writeFileSync(musl, "Object.defineProperty(process, 'report', { value: undefined });");
  assert.match(run('--require', musl), /^LIBRARY_NOT_FOUND: this Node is linked with musl/);

  const platform = path.join(at, 'node_modules', '@a3s-lab', 'code-linux-x64-gnu');
  execFileSync(process.execPath, [path.join(PACKAGE, 'scripts', 'pack.js'), '--out', platform]);
  assert.deepEqual(fs.readdirSync(platform).sort(), ['LICENSE', 'README.md', 'a3s.node', 'liba3s.so.1', 'package.json']);
  const pkg = JSON.parse(fs.readFileSync(path.join(platform, 'package.json'), 'utf8'));
  assert.deepEqual([pkg.name, pkg.os, pkg.cpu, pkg.libc], ['@a3s-lab/code-linux-x64-gnu', ['linux'], ['x64'], ['glibc']]);
  assert.equal(run(), 'opened\n');
  fs.rmSync(at, { recursive: true });
});
