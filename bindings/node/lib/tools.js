'use strict';
// Tools that this program implements: how they are described, and how one call is served.

const { createRequire } = require('node:module');
const path = require('node:path');
const { inspect } = require('node:util');
const { badType } = require('./errors.js');
const { ToolResult } = require('./results.js');
const { encode } = require('./wire.js');

/** What a tool may know of the call it serves. See index.d.ts. */
class ToolContext {
  #controller = new AbortController();
  #send;
  #told = ''; // what was not handed in yet
  #telling; // a promise while a piece is handed in
  #over = false;

  constructor(request, send) {
    this.#send = send;
    this.toolName = request.name;
    this.callId = request.params?.call_id ?? '';
    this.sessionId = request.session_id ?? '';
    this.deadline = request.deadline_ms > 0 ? Date.now() + request.deadline_ms : undefined;
  }

  get signal() { return this.#controller.signal; }

  /** Tells a piece of output while the tool runs. What comes after the call has ended is dropped. */
  emit(text) {
    if (typeof text !== 'string') throw badType('host.chunk', `emit takes a string, not a ${typeof text}`);
    if (this.#over) return;
    this.#told += text.toWellFormed();
    this.#telling ??= this.#tell();
  }

  // The library may make the host wait while the run is behind, so this is not for the event
  // loop; what is told meanwhile becomes one piece.
  async #tell() {
    while (this.#told !== '' && !this.#over) {
      const text = this.#told;
      this.#told = '';
      await this.#send(text).catch(() => { this.#over = true; }); // nobody listens any more
    }
    this.#telling = undefined;
  }

  /** Everything that was told was handed in; nothing more is. */
  static async settle(context) {
    await context.#telling;
    context.#over = true;
  }

  static cancel(context, reason) {
    context.#controller.abort(new DOMException(reason || 'cancelled', 'AbortError'));
  }
}

/** A registered function. It stays registered while its session or agent is open. */
class HostTool {
  constructor(spec, fn) {
    if (typeof spec !== 'object' || spec === null) throw badType('host.register', 'registerTool takes a description {name, description, parameters, ...} and a function');
    if (typeof fn !== 'function') throw badType('host.register', `registerTool takes a function as its second argument, not a ${typeof fn}`);
    const { name, description, parameters, readOnly, timeoutMs, ...unknown } = spec;
    const extra = Object.keys(unknown);
    if (extra.length > 0) throw badType('host.register', `a tool has no ${extra.map((k) => JSON.stringify(k)).join(', ')}; it has name, description, parameters, readOnly and timeoutMs`);
    this.name = name;
    this.fn = fn;
    this.standard = parameters?.['~standard'];
    this.handle = 0n;
    this.spec = { name, description: description ?? name, parameters: schemaOf(parameters), read_only: readOnly, timeout_ms: timeoutMs };
  }

  /** Calls the function. */
  async call(args, context) {
    return this.fn(await this.#checked(args), context);
  }

  /** The arguments as the schema's own library gives them: with defaults and transforms. */
  async #checked(args) {
    if (this.standard === undefined) return args;
    const result = await this.standard.validate(args);
    if (!result.issues) return result.value;
    const words = result.issues.map((i) => `${(i.path ?? []).map((p) => p.key ?? p).join('.') || 'arguments'}: ${i.message}`);
    throw Object.assign(new TypeError(words.join('; ')), { name: 'ValidationError' });
  }
}

/** A JSON schema as it is, or that of a schema object (zod and others that follow the Standard Schema). */
function schemaOf(parameters) {
  const standard = parameters?.['~standard'];
  if (standard === undefined) return parameters;
  if (standard.jsonSchema) return standard.jsonSchema.input({ target: 'draft-2020-12' });
  if (standard.vendor === 'zod' && parameters._zod) {
    const convert = zod()?.toJSONSchema;
    if (convert) return convert(parameters, { io: 'input' });
  }
  throw badType('host.register', `the parameters are a schema of ${JSON.stringify(standard.vendor)} that cannot be turned into a JSON schema here: give a JSON schema, or use zod 4`);
}

function zod() {
  for (const from of [__filename, path.join(process.cwd(), 'package.json')]) {
    try {
      return createRequire(from)('zod');
    } catch {
      // not there; the next place may have it
    }
  }
  return undefined;
}

/**
 * Serves one request: calls the tool and replies once. Gives something to cancel it with, or
 * undefined if there is nothing to cancel.
 */
function serve(tool, request, host) {
  const reply = (answer) => {
    try {
      host.reply(answer);
    } catch {
      // withdrawn meanwhile: nobody waits for the answer
    }
  };
  if (tool === undefined) {
    reply(failure('ReferenceError', `tool ${JSON.stringify(request.name)} is no longer there`));
    return undefined;
  }
  const context = new ToolContext(request, host.send);
  tool.call(request.params?.args ?? {}, context).then(success).catch(raised).then(async (answer) => {
    await ToolContext.settle(context);
    reply(answer);
  });
  return { cancel: (reason) => ToolContext.cancel(context, reason) };
}

function success(value) {
  if (!(value instanceof ToolResult)) return encode({ result: { output: output(value), exit_code: 0 } }, 'host.reply');
  return encode({
    result: { output: value.output, exit_code: value.exitCode, metadata: value.metadata, error_kind: value.errorKind },
  }, 'host.reply');
}

function output(value) {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value.toWellFormed();
  return encode(value, 'host.reply') ?? '';
}

function raised(err) {
  if (!(err instanceof Error)) return failure('Error', typeof err === 'string' ? err : inspect(err));
  return failure(err.name || 'Error', err.message || err.name);
}

function failure(type, message) {
  return encode({ error: { type: String(type).toWellFormed(), message: String(message).toWellFormed() } }, 'host.reply');
}

/** What agents and sessions share: functions of this program as tools of the model. */
class ToolOwner {
  #native;
  #handle;
  #desk;
  #sessionId;
  #tools = new Map();

  constructor(native, handle, desk, sessionId) {
    this.#native = native;
    this.#handle = handle;
    this.#desk = desk;
    this.#sessionId = sessionId;
  }

  /** Makes a function a tool of the model. See index.d.ts. */
  registerTool(spec, fn) {
    const tool = new HostTool(spec, fn);
    this.#desk.listen();
    tool.handle = this.#native.hostRegister(this.#handle, 'tool', encode(tool.spec, 'host.register'));
    this.#tools.set(tool.name, tool);
    this.#desk.add(this.#sessionId, tool);
  }

  /** Withdraws a tool registered here and cancels its open calls; false if there is none. */
  unregisterTool(name) {
    const tool = this.#tools.get(name);
    if (tool === undefined) return false;
    this.#tools.delete(name);
    this.#desk.remove(this.#sessionId, name);
    try {
      this.#native.close(tool.handle, 1000);
    } catch {
      // its session took it along
    }
    return true;
  }
}

module.exports = { ToolOwner, serve };
