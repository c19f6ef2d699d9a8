// The declarations name what is there, and all of it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import * as a3s from '@a3s-lab/code';
import { PACKAGE, internal } from './place.mjs';

const text = fs.readFileSync(path.join(PACKAGE, 'lib', 'index.d.ts'), 'utf8');

test('exports', () => {
  const declared = [...text.matchAll(/^export declare (?:class|function|const) (\w+)/gm)].map((m) => m[1]);
  const again = [...text.matchAll(/^export \{ (\w+) \} from/gm)].map((m) => m[1]);
  assert.deepEqual([...declared, ...again].sort(), Object.keys(a3s).sort());
});

/** Names of the members of a declared class, static ones and constructors left out. */
function members(name) {
  const [, body] = new RegExp(`^(?:export )?declare (?:abstract )?class ${name}\\b[^{]*\\{\\n([^]*?)^\\}`, 'm').exec(text);
  return [...body.matchAll(/^ {2}(?:readonly )?(\[Symbol\.\w+\]|\w+)\??[(<:]/gm)].map((m) => m[1]).filter((n) => n !== 'constructor');
}

const written = (prototype) => Reflect.ownKeys(prototype).map((k) => (k === Symbol.asyncDispose ? '[Symbol.asyncDispose]' : k === Symbol.asyncIterator ? '[Symbol.asyncIterator]' : k)).filter((k) => k !== 'constructor');

for (const name of ['Agent', 'Session', 'EventStream']) {
  test(`members of ${name}`, () => {
    const [declared, there] = [members(name), []];
    for (let p = a3s[name].prototype; p !== Object.prototype; p = Object.getPrototypeOf(p)) there.push(...written(p));
    const inherited = name === 'EventStream' ? [] : members('ExtensionOwner');
    assert.deepEqual([...new Set([...declared, ...inherited])].sort(), [...new Set(there)].sort());
  });
}

test('statuses, kinds and codes agree', () => {
  const { Status, KINDS, CODES } = internal('generated');
  for (const kind of Object.values(CODES)) assert.ok(Object.hasOwn(KINDS, kind), kind);
  for (const status of Object.values(KINDS)) assert.ok(Object.values(Status).includes(status), status);
});
