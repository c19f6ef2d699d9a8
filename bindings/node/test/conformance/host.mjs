// The host's side of a play: its tools, and its extensions of any kind.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { ToolResult } from '@a3s-lab/code';
import { PACKAGE, internal, until } from '../place.mjs';

const PATIENCE = 20_000;
const DEAD = Symbol('no answer');
const STEPS = new Set(['cancel', 'check', 'tool']);

/** Every operation of every kind, as the generated declarations name them. */
const OPS = [...new Set([...fs.readFileSync(path.join(PACKAGE, 'lib', 'generated.d.ts'), 'utf8').matchAll(/^ {6}(\w+): \{ params/gm)].map(([, op]) => op))];

// A handler answers once, and the control stream is the package's own. What a hostile program
// would do with both goes around it, by the addon.
const addon = internal('native').library();
const { readerOpen, hostReply } = addon;
let control; // the control stream that was opened last
let again; // told what became of a second answer, once
addon.readerOpen = (stream) => { control = readerOpen(stream); return control; };
addon.hostReply = (agent, request, answer) => {
  hostReply(agent, request, answer);
  const tell = again;
  again = undefined;
  try {
    if (tell) hostReply(agent, request, answer);
    tell?.('counted');
  } catch (err) {
    tell?.(err.code);
  }
};

/** A value with its large texts written out. */
function grown(value) {
  if (Array.isArray(value)) return value.map(grown);
  if (typeof value !== 'object' || value === null) return value;
  if (Object.hasOwn(value, '$big')) return 'x'.repeat(value.$big);
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, grown(v)]));
}

const failure = ({ type, message, kind, retryable, retry_after_ms: retryAfterMs, details }) =>
  Object.assign(new Error(message), { name: type, kind, retryable, retryAfterMs, details });

/** What one agent of a play supplies. play runs the steps that a handler may take. */
export class Host {
  wrong = [];
  #counts = new Map(); // what is wanted to be asked => [wanted, asked]
  #open = 0;

  constructor(play) {
    this.play = play;
    this.tools = play.scenario.json('host_tools.json', []);
    this.extensions = play.scenario.json('host.json', []);
  }

  /** Registers what belongs to an agent. */
  join(agent) {
    control = undefined;
    for (const spec of this.tools) this.#tool(agent, spec);
    for (const extension of this.extensions) if ((extension.on ?? 'agent') === 'agent') this.#extension(agent, extension);
    this.control = control;
  }

  /** Registers what belongs to a session. */
  joinSession(session) {
    for (const extension of this.extensions) if (extension.on === 'session') this.#extension(session, extension);
  }

  /** Waits until everything was asked as often as it must be and is done. */
  async settle() {
    const open = () => [...this.#counts].filter(([, [wanted, asked]]) => asked < wanted).map(([what]) => what);
    await until(() => this.#open === 0 && open().length === 0, `not asked often enough, or still busy (${this.#open}): ${open()}`, PATIENCE / 1000);
    for (const [what, [wanted, asked]] of this.#counts) assert.equal(asked, wanted, `calls of ${what}`);
  }

  #count(what) {
    const counted = this.#counts.get(what);
    if (counted) counted[1]++;
  }

  #want(what, calls) {
    if (calls !== undefined && !this.#counts.has(what)) this.#counts.set(what, [calls, 0]);
  }

  async #withdrawal(what, { withdrawn }, signal) {
    await sleep(PATIENCE, undefined, { signal, ref: false }).catch(() => {});
    if (!signal.aborted || (withdrawn ?? signal.reason.message) !== signal.reason.message) this.wrong.push(`${what}: withdrawn because ${signal.reason?.message}, want ${withdrawn}`);
  }

  #twice(what) {
    again = (outcome) => { if (outcome !== 'NOT_FOUND') this.wrong.push(`${what}: a second answer gave ${outcome}`); };
  }

  async #busy(serve) {
    this.#open++;
    try {
      return await serve();
    } finally {
      this.#open--;
    }
  }

  #tool(agent, { name, description, read_only: readOnly, timeout_ms: timeoutMs, calls, answer }) {
    const parameters = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'], additionalProperties: false };
    this.#want(name, calls);
    agent.registerTool({ name, description, readOnly, timeoutMs, parameters }, ({ text }, context) => this.#busy(async () => {
      this.#count(name);
      for (const chunk of answer.chunks ?? []) context.emit(chunk);
      if (answer.wait) await this.#withdrawal(name, answer, context.signal);
      if (answer.error) throw failure(answer.error);
      if (answer.twice) this.#twice(name);
      if (answer.garbage) return new ToolResult({ output: 5 });
      return new ToolResult({ output: answer.output ?? text, exitCode: answer.exit_code, metadata: answer.metadata });
    }));
  }

  #extension(owner, { kind, spec, answers, calls = {} }) {
    const handlers = {};
    for (const op of OPS) {
      const what = `${kind} ${spec.name} ${op}`;
      let asked = 0;
      this.#want(what, calls[op]);
      handlers[op] = async (params, context) => {
        const answer = await this.#busy(() => {
          this.#count(what);
          const all = answers?.[op] ?? [];
          return this.#answer(what, all[Math.min(asked++, all.length - 1)], context);
        });
        return answer === DEAD ? new Promise(() => {}) : answer;
      };
    }
    owner.registerExtension(kind, spec, handlers);
  }

  /** A step in a handler; the library would take its failure for the handler's own. */
  async #do(what, line) {
    const [, verb, rest] = /^(\S+) ?([^]*)$/.exec(line);
    try {
      assert.ok(STEPS.has(verb), 'a handler cannot do that');
      await this.play[`do_${verb}`](rest);
    } catch (err) {
      this.wrong.push(`${what}: ${line}: ${err.message}`);
      throw err;
    }
  }

  async #answer(what, answer, context) {
    if (answer === undefined) throw new Error('no answer');
    for (const line of answer.does ?? []) await this.#do(what, line);
    for (const chunk of grown(answer.chunks ?? [])) context.chunk(chunk);
    if (answer.wait) await this.#withdrawal(what, answer, context.signal);
    if (answer.dies) {
      addon.readerClose(this.control);
      return DEAD;
    }
    if (answer.twice) this.#twice(what);
    if (answer.error) throw failure(grown(answer.error));
    return grown(answer.result ?? null);
  }
}
