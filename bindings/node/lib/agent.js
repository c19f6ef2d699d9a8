'use strict';
// A configuration with its models; it opens sessions.

const { fileURLToPath } = require('node:url');
const { Desk } = require('./desk.js');
const { admit, badType, traced, unlessAborted } = require('./errors.js');
const { AgentExtensions } = require('./extensions.js');
const { ids, signalOf, texts } = require('./given.js');
const { library, closeQuietly, whenHeavyGone } = require('./native.js');
const { agents, currentFolder, refuseToWait, sessionRequest, watch } = require('./options.js');
const { Session } = require('./session.js');
const { AGENT, unbuilt } = require('./unbuilt.js');
const { hides, named } = require('./values.js');
const { encode, snake } = require('./wire.js');

const made = Symbol('made by Agent.create');

/** A configuration that was read, with the models, tools and stores it names. See index.d.ts. */
class Agent extends AgentExtensions {
  #native;
  #handle;
  #desk;

  constructor(token, handle) {
    if (token !== made) throw new TypeError('use Agent.create');
    const native = library();
    const desk = new Desk(handle);
    super(native, handle, desk, '');
    this.#native = native;
    this.#handle = handle;
    this.#desk = desk;
    agents.add(handle);
    whenHeavyGone(this, release, desk, handle);
  }

  static async create(configSource, options) {
    const { signal, ...request } = agentRequest(configSource, options);
    const text = encode(request, 'agent.open');
    admit(signal, 'agent.open');
    try {
      return new Agent(made, await unlessAborted(library().agentOpenAsync(text), signal, 'agent.open', closeQuietly));
    } catch (err) {
      throw traced(err);
    }
  }

  // --- sessions ---

  session(workspace, options) { return this.#open({ workspace }, options, 'sessionAsync'); }

  async sessionAsync(workspace, options, call) { return await this.#openAsync({ workspace }, options, call); }

  resumeSession(sessionId, options) { return this.#open(resume(sessionId), options, 'resumeSessionAsync'); }

  async resumeSessionAsync(sessionId, options, call) { return await this.#openAsync(resume(sessionId), options, call); }

  async listSessions() { return this.#now('agent.list_sessions').session_ids; }

  async listStoredSessions(sessionStore, call) {
    const op = 'agent.list_stored_sessions';
    const request = { ...snake({ sessionStore: sessionStore ?? undefined }, op), cwd: currentFolder(op, [sessionStore?.dir]) };
    return (await this.#desk.call(this.#handle, op, request, this, signalOf(call, op))).session_ids;
  }

  async closeSession(sessionId, call) {
    const op = 'agent.close_session';
    ids(op, { sessionId });
    return (await this.#desk.call(this.#handle, op, { session_id: sessionId }, this, signalOf(call, op))).closed;
  }

  // --- the end ---

  async close() {
    try {
      await this.#native.callAsync(this.#handle, 'agent.close', '{}', 0);
    } finally { // also when something goes on in the background
      this.#desk.end();
      agents.delete(this.#handle);
    }
  }

  isClosed() { return this.#now('agent.info').closed; }

  /** What the configuration says that may not be meant. */
  warnings() { return this.#now('agent.info').warnings; }

  async [Symbol.asyncDispose]() { await this.close(); }

  // --- inside ---

  #open(start, options, twin) {
    const request = sessionRequest(start, options);
    refuseToWait('session.open', options, twin);
    return this.#keep(this.#native.sessionOpen(this.#handle, request), options);
  }

  async #openAsync(start, options, call) {
    const request = sessionRequest(start, options);
    const signal = signalOf(call, 'session.open');
    admit(signal, 'session.open');
    try {
      return this.#keep(await unlessAborted(this.#native.sessionOpenAsync(this.#handle, request), signal, 'session.open', closeQuietly), options);
    } catch (err) {
      throw traced(err);
    }
  }

  #keep(handle, options) {
    const store = options?.sessionStore;
    watch(store);
    try {
      return new Session(this, handle, this.#desk, store);
    } catch (err) {
      closeQuietly(handle);
      throw err;
    }
  }

  #now(method) {
    return JSON.parse(this.#native.call(this.#handle, method, '{}', 0));
  }
}

unbuilt(Agent, AGENT);

function release(desk, handle) {
  desk.end();
  agents.delete(handle);
  closeQuietly(handle);
}

function resume(sessionId) {
  return { resume: ids('session.open', { sessionId }).sessionId };
}

function agentRequest(configSource, options = {}) {
  if (typeof options !== 'object' || options === null || Array.isArray(options) || hides(options)) throw badType('agent.open', `options must be an object, not ${named(options)}`);
  const { env = process.env, cwd = currentFolder('agent.open', ['.']), signal, ...rest } = options;
  const source = configSource instanceof URL ? { acl_path: fileURLToPath(configSource) } : { source: texts('agent.open', { configSource }).configSource };
  return { ...source, ...snake(rest, 'agent.open'), env: variables(env), cwd, signal };
}

function variables(env) {
  if (typeof env !== 'object' || env === null || (env !== process.env && hides(env))) throw badType('agent.open', `env must be an object of strings, not ${named(env)}`);
  const out = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    if (typeof value !== 'string') throw badType('agent.open', `env must be an object of strings, but ${name} is ${named(value)}`);
    if (name.isWellFormed() && value.isWellFormed()) out[name] = value;
  }
  return out;
}

module.exports = { Agent };
