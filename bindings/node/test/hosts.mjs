// A store and a workspace of this program, for the tests.
import path from 'node:path';

import { ExtensionError } from '@a3s-lab/code';

/** Keeps sessions in a map. */
export class MapStore {
  kept = new Map();

  load(id, start, limit) {
    const one = this.kept.get(id);
    return one && { generation: one.generation, snapshot: one.snapshot, facts: one.facts.slice(start, start + limit), count: one.facts.length };
  }

  append(id, generation, start, facts) {
    const one = this.kept.get(id) ?? { generation, facts: [] };
    if (generation === one.generation) one.facts.splice(start, Infinity, ...facts);
    this.kept.set(id, one);
  }

  save(id, generation, snapshot) { this.kept.set(id, { generation, snapshot, facts: [] }); }

  delete(id) { this.kept.delete(id); }

  list() { return this.kept.keys(); }

  withBlobs() {
    this.blobs = new Map();
    this.loadBlob = async (id, blob) => this.blobs.get(`${id} ${blob}`);
    this.saveBlob = async (id, blob, data) => { this.blobs.set(`${id} ${blob}`, data); };
    this.deleteBlob = async (id, blob) => { this.blobs.delete(`${id} ${blob}`); };
  }
}

/** Files in a map. */
export class MapWorkspace {
  constructor(files) {
    this.files = new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)]));
  }

  stat(at) {
    const data = this.files.get(at);
    if (data) return { type: 'file', size: data.length };
    if (at === '.' || [...this.files.keys()].some((f) => f.startsWith(`${at}/`))) return { type: 'dir' };
    throw Object.assign(new Error(`there is no ${at}`), { code: 'ENOENT' });
  }

  * list(at) {
    const below = [...this.files.keys()].map((f) => path.posix.relative(at, f)).filter((f) => !f.startsWith('..')).map((f) => f.split('/')[0]);
    for (const name of new Set(below)) yield { name, ...this.stat(path.posix.join(at, name)) };
  }

  async read(at) {
    this.stat(at);
    return { data: this.files.get(at), version: this.files.get(at).toString('hex') };
  }

  write(at, data, { ifVersion, ifAbsent }) {
    const actual = this.files.get(at)?.toString('hex') ?? 'absent';
    const expected = ifAbsent ? 'absent' : ifVersion ?? actual;
    if (expected !== actual) throw new ExtensionError(`${at} was changed`, { kind: 'conflict', details: { expected, actual } });
    this.files.set(at, data);
    return data.toString('hex');
  }

  remove(at) { this.files.delete(at); }
}
