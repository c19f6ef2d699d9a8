// Plays one scenario through the public API alone.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { Agent, CodeError, FileSessionStore, LocalWorkspaceBackend, MemorySessionStore } from '@a3s-lab/code';
import { Host } from './host.mjs';
import { Facts, compare, diff, joined } from './match.mjs';
import { Scenario, VIEWS } from './scenario.mjs';

const PATIENCE = 20_000;

const camelKey = (k) => k.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());
const snakeKey = (k) => k.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** A value with the keys of all its objects in the other spelling. */
function respell(value, key, opaque = []) {
  if (Array.isArray(value)) return value.map((v) => respell(v, key, opaque));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [key(k), opaque.includes(k) ? v : respell(v, key, opaque)]));
}

const envelope = ({ version, type, payload, metadata }) => ({ version, type, payload, metadata });
const wireMessage = (m) => ({ ...respell(m, snakeKey, ['input']), content: m.content.map(({ resultContent, ...b }) => ({ ...respell(b, snakeKey, ['input']), ...(resultContent === undefined ? {} : { content: resultContent }) })) });
const messageOf = (m) => ({ ...respell(m, camelKey, ['content']), content: Array.isArray(m.content) ? m.content.map(({ content, ...b }) => ({ ...respell(b, camelKey, ['input']), ...(content === undefined ? {} : { resultContent: content }) })) : m.content });
const errorOf = ({ code, kind, status, op, message, retryable, details }) => ({ code, kind, status, op, message, retryable, details });
const isQuestion = (tool) => (e) => e.type === 'confirmation_required' && e.payload.tool_name === tool;

/** A started run whose events are collected. */
class Running {
  events = [];
  passed = 0;
  asked = 0;
  #news = [];

  constructor(stream) {
    this.ended = this.#collect(stream);
    this.ended.catch(() => {});
  }

  async #collect(stream) {
    try {
      for await (const event of stream) {
        this.events.push(envelope(event));
        this.#tell();
      }
    } finally {
      this.over = true;
      this.#tell();
    }
  }

  #tell() { this.#news.splice(0).forEach((wake) => wake()); }

  /** The first event from number start on that fits, and the number behind it. */
  async next(start, fits) {
    for (let i = start; ; i++) {
      while (i >= this.events.length) {
        assert.ok(!this.over, 'the run ended without it');
        const late = AbortSignal.timeout(PATIENCE);
        await Promise.race([new Promise((r) => { this.#news.push(r); }), new Promise((_, reject) => { late.onabort = () => reject(new Error('it did not come in time')); })]);
      }
      if (fits(this.events[i])) return [this.events[i], i + 1];
    }
  }
}

/** One scenario being played. */
export class Play {
  agents = [];
  hosts = [];
  events = [];
  results = [];
  #stores = {};
  #noted = {};

  constructor(file, dir) {
    this.scenario = new Scenario(file, dir);
  }

  /** Plays; throws what was not as the scenario wants. */
  async run() {
    this.scenario.layOut();
    try {
      this.#expectError(await this.#steps());
      await this.#expectRest();
      for (const host of this.hosts) await host.settle();
    } finally {
      await Promise.all(this.agents.map((a) => a.close()));
    }
    assert.deepEqual(this.hosts.flatMap((host) => host.wrong), []);
  }

  // --- the host ---

  get agent() { return this.agents.at(-1); }

  async openAgent() {
    const env = { PATH: process.env.PATH, HOME: this.scenario.dir, LANG: 'C.UTF-8', ...this.scenario.json('env.json', {}) };
    this.agents.push(await Agent.create('agent.acl', { env }));
    this.hosts.push(new Host(this));
    this.hosts.at(-1).join(this.agent);
  }

  #use(session) {
    this.session = session;
    this.hosts.at(-1).joinSession(session);
  }

  options(wanted) {
    const made = {
      workspace_backend: (v) => (v.kind === 'local' ? new LocalWorkspaceBackend(v.root) : v),
      session_store: (v) => (v.kind === 'file' ? new FileSessionStore(v.dir) : v.kind === 'memory' ? (this.#stores[v.instance_id] ??= new MemorySessionStore()) : v),
    };
    return Object.fromEntries(Object.entries(wanted).map(([k, v]) => [camelKey(k), typeof v === 'object' && v !== null && made[k] ? made[k](v) : respell(v, camelKey)]));
  }

  // --- steps ---

  async #steps() {
    try {
      await this.openAgent();
      await this.do_open(JSON.stringify(this.scenario.json('options.json', {})));
    } catch (err) {
      if (err instanceof CodeError) return err;
      throw err;
    }
    const lines = this.scenario.steps();
    for (const [i, line] of lines.entries()) {
      const [, code, verb, rest] = /^(?:fails (\S+) )?(\S+) ?([^]*)$/.exec(line);
      let error;
      try {
        const step = this[`do_${verb.replaceAll('-', '_')}`];
        assert.ok(step, `there is no step ${verb}`);
        await step.call(this, rest, code !== undefined);
      } catch (err) {
        error = err;
      }
      if (code !== undefined) assert.equal(error?.code, code, `step ${line}: got ${error}`);
      else if (error instanceof CodeError && i === lines.length - 1) return error;
      else if (error !== undefined) throw new Error(`step ${line}: ${error.message}`, { cause: error });
    }
    await this.do_join();
    return undefined;
  }

  async do_start(prompt, refused) {
    if (!refused) await this.do_join(); // what must fail may be refused because a run is active
    const { history } = this;
    this.history = undefined;
    this.active = new Running(await this.session.stream(prompt, history));
  }

  async do_stream(prompt, refused) {
    await this.do_start(prompt, refused);
    await this.do_join();
  }

  async do_send(prompt, refused) {
    if (!refused) await this.do_join();
    const before = (await this.session.runs()).length;
    const { history } = this;
    this.history = undefined;
    try {
      const result = await this.session.send(prompt, history);
      this.results.push({ ...respell({ ...result }, snakeKey), verification_summary: JSON.parse(result.verificationSummaryJson) });
    } finally {
      if ((await this.session.runs()).length > before) await this.#ended(await this.view('events'));
    }
  }

  do_history(text) { this.history = JSON.parse(text).map(messageOf); }

  async do_join() {
    const running = this.active;
    this.active = undefined;
    if (running === undefined) return;
    await Promise.race([running.ended, sleep(PATIENCE, undefined, { ref: false }).then(() => { throw new Error('the run did not end in time'); })]);
    await this.#ended(running.events);
  }

  async do_await(line) {
    const facts = new Facts(line);
    [, this.active.passed] = await this.active.next(this.active.passed, (e) => facts.fitsEvent(e));
  }

  async do_confirm(rest) {
    const [, tool, answer] = /^(\S+) (.*)$/.exec(rest);
    let question;
    [question, this.active.asked] = await this.active.next(this.active.asked, isQuestion(tool));
    assert.equal(await this.#answer(question, answer), true, 'the answer did not count');
  }

  async do_confirm_late(rest) {
    const [, tool, answer] = /^(\S+) (.*)$/.exec(rest);
    const question = [...this.events, ...(this.active?.events ?? [])].findLast(isQuestion(tool));
    assert.equal(await this.#answer(question, answer), false, 'the answer counted');
  }

  #answer(question, answer) {
    const [, decision, reason] = /^(allow|deny) ?(.*)$/.exec(answer);
    return this.session.confirmToolUse(question.payload.tool_id, decision === 'allow', reason || undefined);
  }

  async do_cancel(rest) { assert.equal(await this.session.cancelAsync(), rest !== 'false'); }

  async do_cancel_run() { assert.equal(await this.session.cancelRun((await this.session.currentRun()).id), true); }

  async do_cancel_confirmations(count) { assert.equal(await this.session.cancelConfirmations(), Number(count)); }

  do_save() { return this.session.save(); }

  do_close() { return this.session.closeAsync(); }

  do_agent() { return this.openAgent(); }

  async do_open(options) { this.#use(await this.agent.sessionAsync(this.scenario.workspace, this.options(JSON.parse(options || '{}')))); }

  async do_resume(options) {
    const wanted = options ? JSON.parse(options) : this.scenario.json('options.json', {});
    this.#use(await this.agent.resumeSessionAsync(this.session.sessionId, this.options(wanted)));
  }

  async do_tool(rest) {
    const [, name, args] = /^(\S+) ?([^]*)$/.exec(rest);
    this.results.push(respell({ ...await this.session.tool(name, JSON.parse(args || '{}')) }, snakeKey, ['metadata', 'errorKind']));
  }

  async do_artifact(uri) { this.results.push(await this.session.getArtifactAsync(uri)); }

  async do_check(rest) {
    const [, name, want] = /^(\S+) ([^]*)$/.exec(rest);
    assert.equal(diff(await this.view(name), JSON.parse(want), name), '');
  }

  async do_note(name) { this.#noted[name] = await this.view(name); }

  async do_same(name) { assert.deepEqual(await this.view(name), this.#noted[name]); }

  // --- what came of it ---

  async view(name) {
    const s = this.session;
    switch (name) {
      case 'events': {
        const runs = await s.runs();
        return runs.length ? (await s.runEvents(runs.at(-1).id)).map(envelope) : [];
      }
      case 'info':
        return {
          session_id: s.sessionId, workspace: s.workspace, init_warning: s.initWarning, closed: s.isClosed(), tenant_id: s.tenantId,
          principal: s.principal, agent_template_id: s.agentTemplateId, correlation_id: s.correlationId };
      case 'history': return s.history().map(wireMessage);
      case 'pending': return (await s.pendingConfirmations()).map((p) => respell(p, snakeKey, ['args']));
      case 'commands': return s.listCommands();
      case 'runs': return s.runs();
      case 'sessions': return this.agent.listSessions();
      case 'tools': return s.toolNames();
      case 'traces': return s.traceEvents();
      default: throw new Error(`there is nothing called ${name} to look at`);
    }
  }

  /** Checks what holds for every run, and keeps its events. */
  async #ended(run) {
    this.events.push(...run);
    const first = run[0].metadata;
    const terminal = { agent_end: 'completed', error: 'failed' };
    let before = 0;
    for (const [i, e] of run.entries()) {
      const m = e.metadata;
      assert.deepEqual([e.version, m.sequence, m.run_id, m.session_id, m.timestamp_ms >= before], [1, i, first.run_id, this.session.sessionId, true], JSON.stringify(e));
      assert.equal(Object.hasOwn(terminal, e.type), i === run.length - 1, `${e.type} is number ${i} of ${run.length}`);
      before = m.timestamp_ms;
    }
    const kept = (await this.session.runEvents(first.run_id)).map(envelope);
    if (kept.length >= run.length) assert.deepEqual(kept, run); // fewer: retention let some go
    const last = run.at(-1);
    const status = last.payload.code === 'CANCELLED' ? 'cancelled' : terminal[last.type];
    const snapshot = await this.session.runSnapshot(first.run_id);
    if (snapshot) assert.deepEqual([snapshot.status, snapshot.event_count], [status, run.length]);
    assert.equal(await this.session.currentRun(), null);
  }

  #expectError(error) {
    const text = this.scenario.section('want/error').trim();
    if (!text) assert.equal(error, undefined, `failed with ${error?.stack}`);
    else assert.ok(error && new Facts(`error ${text}`).fits(errorOf(error), ['code']), `failed with ${error && JSON.stringify(errorOf(error))}, want ${text}`);
  }

  async #expectRest() {
    const { scenario } = this;
    if (scenario.has('want/events')) compare(joined(this.events), scenario.section('want/events'));
    if (scenario.has('want/result.json')) {
      const want = scenario.json('want/result.json');
      assert.equal(diff(Array.isArray(want) ? this.results : this.results.at(-1), want, 'result'), '');
    }
    for (const name of VIEWS) if (scenario.has(`want/${name}.json`)) await this.do_check(`${name} ${scenario.section(`want/${name}.json`)}`);
    assert.deepEqual(scenario.wrongFiles(), []);
  }
}
