// What the tests share: a workspace with an agent whose model plays a script, programs in
// processes of their own, and the check that nothing is left.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, afterEach } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import v8 from 'node:v8';
import vm from 'node:vm';

import { Agent } from '@a3s-lab/code';

const require = createRequire(import.meta.url);
export const HERE = path.dirname(fileURLToPath(import.meta.url));
export const ROOT = path.resolve(HERE, '..', '..', '..');
export const PACKAGE = path.resolve(HERE, '..');
export const internal = (name) => require(`../lib/${name}.js`);

export const SCRIPT_ACL = 'default_model = "script/main"\nproviders "script" { models "main" { script = "turns.txt" } }\n';
/** A model that hangs in its first turn and answers in its second. */
export const SLOW = 'say starting\nwait 60000\nsay never\nend\nsay after\nend';
export const ALL = { defaultDecision: 'allow' };

v8.setFlagsFromString('--expose-gc');
export const gc = vm.runInNewContext('gc');

const open = new Set();

/** A workspace, a script for the model, and agents that read it. */
export class Place {
  constructor() {
    this.root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'a3s-node-')));
    this.workspace = path.join(this.root, 'workspace');
    this.acl = path.join(this.root, 'agent.acl');
    this.agents = [];
    fs.mkdirSync(this.workspace);
    fs.writeFileSync(this.acl, SCRIPT_ACL);
    open.add(this);
  }

  script(text) {
    fs.writeFileSync(path.join(this.root, 'turns.txt'), `${text.trim()}\n`);
  }

  file(name, text) {
    fs.mkdirSync(path.dirname(path.join(this.workspace, name)), { recursive: true });
    fs.writeFileSync(path.join(this.workspace, name), text);
  }

  read(name) {
    return fs.readFileSync(path.join(this.workspace, name), 'utf8');
  }

  async agent(script) {
    this.script(script);
    const agent = await Agent.create(this.acl);
    this.agents.push(agent);
    return agent;
  }

  async session(script, options) {
    return (await this.agent(script)).sessionAsync(this.workspace, options);
  }

  async close() {
    open.delete(this);
    await Promise.all(this.agents.splice(0).map((a) => a.close()));
    fs.rmSync(this.root, { recursive: true, force: true });
  }
}

afterEach(async () => {
  for (const place of [...open]) await place.close();
});

/** Live handles of the library in this process. */
export function handles() {
  return JSON.parse(internal('native').library().stats(0n));
}

/** Waits until a condition holds. */
export async function until(condition, what, seconds = 10) {
  for (const end = Date.now() + seconds * 1000; !(await condition()); await sleep(5)) {
    assert.ok(Date.now() < end, what);
  }
}

/** At the end of a file every object was collected and every handle is gone. */
export function leavesNothing() {
  after(async () => {
    await until(async () => {
      gc();
      await sleep(1); // finalizers run in a task of their own
      const { handles: live, calls, callbacks, closing } = handles();
      return [...Object.values(live), calls, callbacks, closing].every((n) => n === 0);
    }, `handles are left: ${JSON.stringify(handles())}`);
  });
}

export async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

export const types = (events) => events.map((e) => e.type);

/** Starts a program in a process of its own; ended gives {code, signal, out, err}. */
export function program(source, args = [], { env = {}, cwd = os.tmpdir(), node = [] } = {}) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'a3s-program-'));
  const file = path.join(dir, 'program.mjs');
  fs.writeFileSync(file, source.replaceAll("'@a3s-lab/code'", JSON.stringify(path.join(PACKAGE, 'lib', 'index.mjs'))));
  const child = spawn(process.execPath, [...node, file, ...args], { cwd, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  const told = { out: '', err: '' };
  child.stdout.on('data', (b) => { told.out += b; });
  child.stderr.on('data', (b) => { told.err += b; });
  const ended = new Promise((resolve) => {
    child.on('close', (code, signal) => {
      fs.rmSync(dir, { recursive: true });
      resolve({ code, signal, ...told });
    });
  });
  return { child, told, ended };
}
