'use strict';
// How this program supplies parts of the library: tools, commands, models, stores and more.

const { badType } = require('./errors.js');
const { optionsOf } = require('./given.js');
const { answering } = require('./kinds.js');
const { Extension, ToolContext } = require('./requests.js');
const { HostTool } = require('./tools.js');
const { named } = require('./values.js');
const { encode } = require('./wire.js');

const OP = 'host.register';

/** Something that is registered. See types/extensions.d.ts. */
class Registration {
  #withdraw;
  #closed = false;

  constructor(name, withdraw) {
    this.name = name;
    this.#withdraw = withdraw;
  }

  /** Takes it back and cancels what it is serving. May be called twice. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#withdraw();
  }

  [Symbol.dispose]() { this.close(); }
}

/** A session store of this program, for the option sessionStore. */
class HostSessionStore extends Registration {
  constructor(name, withdraw) {
    super(name, withdraw);
    this.kind = 'host';
  }

  get backend() { return this.kind; }
}

/** A workspace of this program, for the option workspaceBackend. */
class HostWorkspaceBackend extends Registration {
  constructor(name, withdraw) {
    super(name, withdraw);
    this.kind = 'host';
  }
}

/** Registers what serves a kind with an owner; Made is what comes of it. */
let supply;

/** What agents and sessions share: this program's own parts. See types/extensions.d.ts. */
class ExtensionOwner {
  #native;
  #handle;
  #desk;
  #sessionId;
  #own = new Map(); // kind and name => extension; the desk holds them weakly

  constructor(native, handle, desk, sessionId) {
    this.#native = native;
    this.#handle = handle;
    this.#desk = desk;
    this.#sessionId = sessionId;
  }

  /** Makes a function a tool of the model. */
  registerTool(spec, fn) {
    const tool = new HostTool(spec, fn);
    return this.#register(new Extension('tool', tool.spec, { call: (params, context) => tool.call(params, context) }, ToolContext));
  }

  /** Withdraws a tool registered here and cancels its open calls; false if there is none. */
  unregisterTool(name) {
    return this.unregisterExtension('tool', name);
  }

  /** Has every tool call judged by this program. */
  registerPermissionChecker(checker, options) {
    const { name = this.#unnamed('checker'), timeoutMs } = optionsOf('registerPermissionChecker', OP, options, ['name', 'timeoutMs']);
    return supply(this, 'permission', checker, { name, timeout_ms: timeoutMs });
  }

  /** Gives background to prompts. */
  registerContextProvider(name, provider, options) {
    const { timeoutMs } = optionsOf('registerContextProvider', OP, options, ['timeoutMs']);
    return supply(this, 'context', provider, { name, timeout_ms: timeoutMs });
  }

  /** Answers prompts that begin with /name. */
  registerCommand(name, description, handler, options) {
    const { usage, timeoutMs } = optionsOf('registerCommand', OP, typeof options === 'number' ? { timeoutMs: options } : options, ['usage', 'timeoutMs']);
    return supply(this, 'command', handler, { name, description, usage, timeout_ms: timeoutMs });
  }

  /** Receives the library's log lines. */
  registerLog(handler, options) {
    const { name = this.#unnamed('log'), level, timeoutMs } = optionsOf('registerLog', OP, options, ['name', 'level', 'timeoutMs']);
    return supply(this, 'log', handler, { name, level, timeout_ms: timeoutMs });
  }

  /** Supplies a part of the library in the library's own words. */
  registerExtension(kind, spec, handlers) {
    if (typeof kind !== 'string') throw badType(OP, `kind must be a string, not ${named(kind)}`);
    if (typeof spec !== 'object' || spec === null) throw badType(OP, `the description of a ${kind} must be an object`);
    const ops = Object.entries(typeof handlers === 'object' && handlers !== null ? handlers : {});
    if (ops.length === 0 || ops.some(([, fn]) => typeof fn !== 'function')) throw badType(OP, `the handlers of a ${kind} must be an object of functions`);
    return this.#register(new Extension(kind, spec, Object.fromEntries(ops)));
  }

  /** Withdraws an extension registered here; false if there is none. */
  unregisterExtension(kind, name) {
    for (const [what, value] of [['kind', kind], ['name', name]]) if (typeof value !== 'string') throw badType('host.unregister', `the ${what} must be a string, not ${named(value)}`);
    const extension = this.#own.get(key(kind, name));
    if (extension === undefined) return false;
    this.#withdraw(extension);
    return true;
  }

  /** The name of what was given none. A session's and its agent's must differ. */
  #unnamed(what) {
    return this.#sessionId === '' ? what : `session-${what}`;
  }

  static {
    supply = (owner, ...args) => owner.#supply(...args);
  }

  #supply(kind, served, description, Made) {
    if (typeof description.name !== 'string') throw badType(OP, `the name of a ${kind} must be a string, not ${named(description.name)}`);
    const { spec, ops } = answering(kind, served, description);
    return this.#register(new Extension(kind, spec, ops), Made);
  }

  #register(extension, Made = Registration) {
    this.#desk.listen(); // the library asks nobody who does not listen
    extension.handle = this.#native.hostRegister(this.#handle, extension.kind, encode(extension.spec, OP));
    this.#own.set(key(extension.kind, extension.name), extension);
    this.#desk.add(this.#sessionId, extension);
    return new Made(extension.name, () => this.#withdraw(extension));
  }

  #withdraw(extension) {
    const own = key(extension.kind, extension.name);
    if (this.#own.get(own) !== extension) return; // it was withdrawn by its name
    this.#own.delete(own);
    this.#desk.remove(this.#sessionId, extension);
    try {
      this.#native.close(extension.handle, 1000);
    } catch {
      // its session took it along
    }
  }
}

/** What only agents take: it must be there before the session that names it opens. */
class AgentExtensions extends ExtensionOwner {
  /** Supplies a model, to be named host/NAME. */
  registerModel(name, client, options) {
    const { context, output, toolCall, reasoning, stream, timeoutMs } = optionsOf('registerModel', OP, options, ['context', 'output', 'toolCall', 'reasoning', 'stream', 'timeoutMs']);
    return supply(this, 'model', client, { name, context, output, tool_call: toolCall, reasoning, stream, timeout_ms: timeoutMs });
  }

  /** Supplies a session store. */
  registerSessionStore(name, store, options) {
    const { timeoutMs } = optionsOf('registerSessionStore', OP, options, ['timeoutMs']);
    return supply(this, 'store', store, { name, timeout_ms: timeoutMs }, HostSessionStore);
  }

  /** Supplies a workspace. */
  registerWorkspace(name, workspace, options) {
    const { root, run, search, timeoutMs } = optionsOf('registerWorkspace', OP, options, ['root', 'run', 'search', 'timeoutMs']);
    return supply(this, 'workspace', workspace, { name, root, run, search, timeout_ms: timeoutMs }, HostWorkspaceBackend);
  }

  /** Sends the HTTP requests of a provider whose key transport is "host/NAME". */
  registerTransport(name, transport, options) {
    const { timeoutMs } = optionsOf('registerTransport', OP, options, ['timeoutMs']);
    return supply(this, 'transport', transport, { name, timeout_ms: timeoutMs });
  }
}

function key(kind, name) {
  return `${kind}\0${name}`;
}

module.exports = { AgentExtensions, ExtensionOwner, HostSessionStore, HostWorkspaceBackend, Registration };
