'use strict';
// A conversation in a workspace.

const { DirectTools } = require('./direct.js');
const { admit, badType } = require('./errors.js');
const { eventFrom } = require('./events.js');
const { BLOCKING } = require('./generated.js');
const { ids, signalOf } = require('./given.js');
const { library, closeQuietly, whenHeavyGone } = require('./native.js');
const { refuseToWait } = require('./options.js');
const { AgentResult } = require('./results.js');
const { EventStream } = require('./stream.js');
const { SESSION, unbuilt } = require('./unbuilt.js');
const { named } = require('./values.js');
const { camel, encode, messageFrom, messageTo } = require('./wire.js');

/** A conversation in a workspace, under a policy. Made by an Agent. See index.d.ts. */
class Session extends DirectTools {
  #native;
  #agent; // its handle ends this one's
  #handle;
  #desk;
  #store; // one in memory, or of this program, lives as long as somebody can reach it
  #info;

  constructor(agent, handle, desk, store) {
    const native = library();
    const info = JSON.parse(native.call(handle, 'session.info', '{}', 0));
    super(native, handle, desk, info.session_id, (method, params, signal) => this.#call(method, params, signal));
    this.#native = native;
    this.#agent = agent;
    this.#handle = handle;
    this.#desk = desk;
    this.#store = store;
    this.#info = info;
    whenHeavyGone(this, closeQuietly, handle);
  }

  // --- identity ---

  get sessionId() { return this.#info.session_id; }
  get workspace() { return this.#info.workspace; }
  get initWarning() { return this.#info.init_warning || null; }
  get tenantId() { return this.#info.tenant_id || null; }
  get principal() { return this.#info.principal || null; }
  get agentTemplateId() { return this.#info.agent_template_id || null; }
  get correlationId() { return this.#info.correlation_id || null; }

  isClosed() { return this.#now('session.info').closed; }

  // --- conversation ---

  async send(request, history, options) {
    return new AgentResult(await this.#call('session.send', runRequest(request, history), signalOf(options, 'session.send')));
  }

  run(request, history, options) { return this.send(request, history, options); }

  sendRequest(request, options) { return this.send(request, undefined, options); }

  async stream(request, history, options) {
    const signal = signalOf(options, 'run.start');
    admit(signal, 'run.start');
    const run = this.#native.runStart(this.#handle, encode(runRequest(request, history), 'run.start'));
    return new EventStream(this, run, signal);
  }

  streamRequest(request, options) { return this.stream(request, undefined, options); }

  history() { return this.#now('session.history').messages.map(messageFrom); }

  cancel() { return this.#now('session.cancel').cancelled; }

  async cancelAsync() { return this.cancel(); }

  async cancelRun(runId) { return (await this.#call('session.cancel_run', run('session.cancel_run', runId))).cancelled; }

  async save(options) { await this.#call('session.save', {}, signalOf(options, 'session.save')); }

  close() {
    refuseToWait('session.close', { sessionStore: this.#store }, 'closeAsync');
    this.#now('session.close');
  }

  async closeAsync(options) { await this.#call('session.close', {}, signalOf(options, 'session.close')); }

  // --- runs ---

  async runs() { return (await this.#call('session.runs', {})).runs; }

  async runSnapshot(runId) { return (await this.#call('session.run_snapshot', run('session.run_snapshot', runId))).run ?? null; }

  async runEvents(runId) { return (await this.#call('session.run_events', run('session.run_events', runId))).events.map(eventFrom); }

  async runEventPage(runId, afterSequence, limit) {
    const { page } = await this.#call('session.run_event_page', { ...run('session.run_event_page', runId), after_sequence: afterSequence ?? undefined, limit: limit ?? undefined });
    return page ? { ...camel(page), events: page.events.map(eventFrom) } : null;
  }

  async currentRun() { return (await this.#call('session.current_run', {})).run ?? null; }

  async activeTools() { return (await this.#call('session.active_tools', {})).tools; }

  traceEvents() { return this.#now('session.trace_events').events; }

  getArtifact(uri) {
    refuseToWait('session.get_artifact', { sessionStore: this.#store }, 'getArtifactAsync');
    return this.#now('session.get_artifact', ids('session.get_artifact', { uri })).artifact ?? null;
  }

  async getArtifactAsync(uri, options) { return (await this.#call('session.get_artifact', ids('session.get_artifact', { uri }), signalOf(options, 'session.get_artifact'))).artifact ?? null; }

  // --- questions ---

  async pendingConfirmations() { return (await this.#call('session.pending_confirmations', {})).pending.map(camel); }

  async confirmToolUse(toolId, approved, reason) {
    ids('session.confirm_tool_use', { toolId });
    return (await this.#call('session.confirm_tool_use', { tool_id: toolId, approved, reason: reason ?? undefined })).found;
  }

  async cancelConfirmations() { return (await this.#call('session.cancel_confirmations', {})).count; }

  // --- tools and commands ---

  toolNames() { return this.#now('session.tool_names').names; }

  toolDefinitions() { return this.#now('session.tool_definitions').tools; }

  listCommands() {
    return this.#now('session.list_commands').commands.map(({ usage, ...c }) => (usage ? { ...c, usage } : c));
  }

  async [Symbol.asyncDispose]() { await this.closeAsync(); }

  // --- inside ---

  /** An operation on this thread. */
  #now(method, params = {}) {
    return JSON.parse(this.#native.call(this.#handle, method, encode(params, method), 0));
  }

  /**
   * An operation that may wait runs in the library; the others take less time than starting them
   * would. With a store of this program each may wait, for this thread to answer.
   */
  async #call(method, params, signal) {
    return BLOCKING.has(method) || this.#store?.kind === 'host' ? await this.#desk.call(this.#handle, method, params, this, signal) : this.#now(method, params);
  }
}

unbuilt(Session, SESSION);

function run(op, runId) {
  return { run_id: ids(op, { runId }).runId };
}

/** The request object of a run. */
function runRequest(request, history) {
  const whole = typeof request === 'string' ? { prompt: request } : request;
  if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) {
    throw badType('run.start', `prompt must be a string or a request object, not ${named(request)}`);
  }
  const out = { ...whole };
  if (history !== undefined && history !== null) out.history = history;
  if (out.history === null) delete out.history;
  if (Array.isArray(out.history)) out.history = out.history.map(messageTo);
  return out;
}

module.exports = { Session };
