// The declarations name what is there, and all of it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import * as a3s from '@a3s-lab/code';
import { PACKAGE, internal } from './place.mjs';

const read = (name) => fs.readFileSync(path.join(PACKAGE, 'lib', name), 'utf8');
const folder = fs.readdirSync(path.join(PACKAGE, 'lib', 'types')).map((name) => path.join('types', name));
const text = folder.map(read).join('\n');

test('exports', () => {
  const index = read('index.d.ts');
  const declared = [...index.matchAll(/^export declare (?:class|function|const) (\w+)/gm)].map((m) => m[1]);
  const again = [...index.matchAll(/^export \{([^}]*)\} from/gm)].flatMap((m) => m[1].split(',').map((n) => n.trim()));
  assert.deepEqual([...declared, ...again].sort(), Object.keys(a3s).sort());
});

test('every public name is described', () => {
  const bare = [];
  for (const name of [...folder.filter((n) => !n.endsWith('hosts.d.ts')), 'index.d.ts']) {
    const lines = read(name).split('\n');
    for (const [i, line] of lines.entries()) {
      if (/^export (?!\{|type [{*]|\*)/.test(line) && !/\*\/$/.test(lines[i - 1])) bare.push(`${name}:${i + 1} ${line}`);
    }
  }
  assert.deepEqual(bare, []);
});

/** Names of the members of a declared class, static ones and constructors left out. */
function members(name) {
  const [, body] = new RegExp(`^(?:export )?declare (?:abstract )?class ${name}\\b[^{]*\\{\\n([^]*?)^\\}`, 'm').exec(text);
  return [...body.matchAll(/^ {2}(?:readonly )?(\[Symbol\.\w+\]|\w+)\??[(<:]/gm)].map((m) => m[1]).filter((n) => n !== 'constructor');
}

const { AGENT, SESSION } = internal('unbuilt');
const unbuilt = new Set([...AGENT, ...SESSION]);
const written = (prototype) => Reflect.ownKeys(prototype).filter((k) => !unbuilt.has(k)).map((k) => (k === Symbol.asyncDispose ? '[Symbol.asyncDispose]' : k === Symbol.asyncIterator ? '[Symbol.asyncIterator]' : k === Symbol.dispose ? '[Symbol.dispose]' : k)).filter((k) => k !== 'constructor');

const INHERITED = { Agent: ['ExtensionOwner', 'AgentExtensions'], Session: ['ExtensionOwner'], EventStream: [], Registration: [], HostSessionStore: ['Registration'] };

for (const name of Object.keys(INHERITED)) {
  test(`members of ${name}`, () => {
    const [declared, there] = [members(name), []];
    for (let p = a3s[name].prototype; p !== Object.prototype; p = Object.getPrototypeOf(p)) there.push(...written(p));
    const own = ['kind', 'name'].filter((n) => declared.includes(n) || INHERITED[name].some((c) => members(c).includes(n)));
    assert.deepEqual([...new Set([...declared, ...INHERITED[name].flatMap(members)])].sort(), [...new Set([...there, ...own])].sort());
  });
}

test('statuses, kinds and codes agree', () => {
  const { Status, KINDS, CODES } = internal('generated');
  for (const kind of Object.values(CODES)) assert.ok(Object.hasOwn(KINDS, kind), kind);
  for (const status of Object.values(KINDS)) assert.ok(Object.values(Status).includes(status), status);
});

test('what is not built says so, and is not declared', () => {
  for (const [Class, names] of [[a3s.Agent, AGENT], [a3s.Session, SESSION]]) {
    for (const name of names) {
      assert.throws(() => Class.prototype[name](), (err) => err instanceof a3s.CodeError && err.code === 'UNSUPPORTED_OPERATION' && err.kind === 'unsupported' && err.message.includes(name), name);
      assert.ok(!new RegExp(`^ {2}${name}\\b`, 'm').test(text), name);
      assert.ok(!Object.keys(Class.prototype).includes(name));
    }
  }
});
