'use strict';
// What this program supplies to the library: tools, commands and whole parts. How requests reach
// it is the desk's part; how one of them is served is told here.

const { inspect } = require('node:util');
const { badType, refuse } = require('./errors.js');
const { HostTool } = require('./tools.js');
const { camel, encode } = require('./wire.js');

/** What a handler may know of the request it serves. See index.d.ts. */
class ExtensionContext {
  #controller = new AbortController();
  #send;
  #told = []; // pieces that were not handed in yet
  #telling; // a promise while a piece is handed in
  #over = false;

  constructor(request, send) {
    this.#send = send;
    this.name = request.name;
    this.sessionId = request.session_id ?? '';
    this.deadline = request.deadline_ms > 0 ? Date.now() + request.deadline_ms : undefined;
  }

  get signal() { return this.#controller.signal; }

  /** Hands in a piece of the answer. What comes after the request has ended is dropped. */
  chunk(value) {
    this.tell(value, () => false);
  }

  /** Hands in a piece, or lets join make it part of the last one that waits. */
  tell(value, join) {
    if (this.#over) return;
    if (this.#told.length === 0 || !join(this.#told.at(-1), value)) this.#told.push(value);
    this.#telling ??= this.#tell();
  }

  // The library may make the host wait while the run is behind, so this is not for the event loop.
  async #tell() {
    while (this.#told.length > 0 && !this.#over) {
      await this.#send(encode(this.#told.shift(), 'host.chunk')).catch((err) => {
        this.#over = true; // nobody listens any more, or the piece is none
        this.failure = err;
      });
    }
    this.#telling = undefined;
  }

  /** Everything that was told was handed in; nothing more is. */
  static async settle(context) {
    await context.#telling;
    context.#over = true;
    if (context.failure?.code === 'INVALID_REQUEST') throw context.failure;
  }

  static cancel(context, reason) {
    context.#controller.abort(new DOMException(reason || 'cancelled', 'AbortError'));
  }
}

/** The context of a tool's call. */
class ToolContext extends ExtensionContext {
  constructor(request, send) {
    super(request, send);
    this.callId = request.params?.call_id ?? '';
  }

  get toolName() { return this.name; }

  /** Tells a piece of output while the tool runs. */
  emit(text) {
    if (typeof text !== 'string') throw badType('host.chunk', `emit takes a string, not a ${typeof text}`);
    this.tell({ delta: text.toWellFormed() }, (last, piece) => {
      last.delta += piece.delta;
      return true;
    });
  }
}

/** Something registered: a kind, a name, and a function for each operation. */
class Extension {
  constructor(kind, spec, ops, Context = ExtensionContext) {
    Object.assign(this, { kind, name: spec.name, spec, ops, Context, handle: 0n });
  }
}

/**
 * Serves one request and replies once. Gives something to cancel it with, or undefined if there
 * is nothing to cancel.
 */
function serve(extension, request, host) {
  const reply = (answer) => {
    try {
      host.reply(answer);
    } catch {
      // withdrawn meanwhile: nobody waits for the answer
    }
  };
  const op = extension?.ops[request.op];
  if (op === undefined) {
    reply(failed(new ReferenceError(`${request.kind} ${JSON.stringify(request.name)} ${extension ? `has no ${request.op}` : 'is no longer there'}`)));
    return undefined;
  }
  const context = new extension.Context(request, host.send);
  answer(op, request.params ?? {}, context).catch(failed).then(reply);
  return { cancel: (reason) => ExtensionContext.cancel(context, reason) };
}

async function answer(op, params, context) {
  try {
    return encode({ result: (await op(params, context)) ?? {} }, 'host.reply');
  } finally {
    await ExtensionContext.settle(context);
  }
}

/** A failure as the library reads it: type and message, and what more an error says of itself. */
function failed(err) {
  if (!(err instanceof Error)) return failure('Error', typeof err === 'string' ? err : inspect(err));
  const { kind, retryable, retryAfterMs, details } = err;
  const more = {
    kind: typeof kind === 'string' ? kind : undefined,
    retryable: retryable === true ? true : undefined,
    retry_after_ms: Number.isSafeInteger(retryAfterMs) ? retryAfterMs : undefined,
    details: typeof details === 'object' && details !== null ? details : undefined,
  };
  try {
    return failure(err.name || 'Error', err.message || err.name, more);
  } catch {
    return failure(err.name || 'Error', err.message || err.name); // the details are no JSON
  }
}

function failure(type, message, more) {
  return encode({ error: { type: String(type).toWellFormed(), message: String(message).toWellFormed(), ...more } }, 'host.reply');
}

/** What agents and sessions share: this program's own parts. */
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

  /** Makes a function a tool of the model. See index.d.ts. */
  registerTool(spec, fn) {
    const tool = new HostTool(spec, fn);
    this.#register(new Extension('tool', tool.spec, { call: (params, context) => tool.call(params, context) }, ToolContext));
  }

  /** Withdraws a tool registered here and cancels its open calls; false if there is none. */
  unregisterTool(name) {
    return this.unregisterExtension('tool', name);
  }

  /** Answers prompts that begin with /name. See index.d.ts. */
  registerCommand(name, description, handler, timeoutMs) {
    if (typeof handler !== 'function') throw badType('host.register', `registerCommand takes a function, not a ${typeof handler}`);
    const run = async ({ args, ctx }) => ({ text: String((await handler(args, commandContext(ctx))) ?? '') });
    this.#register(new Extension('command', { name, description, timeout_ms: timeoutMs ?? undefined }, { run }));
  }

  /** Supplies a part of the library. See index.d.ts. */
  registerExtension(kind, spec, handlers) {
    if (typeof kind !== 'string') throw badType('host.register', `kind must be a string, not a ${typeof kind}`);
    if (typeof spec !== 'object' || spec === null) throw badType('host.register', `the description of a ${kind} must be an object`);
    const ops = Object.entries(typeof handlers === 'object' && handlers !== null ? handlers : {});
    if (ops.length === 0 || ops.some(([, fn]) => typeof fn !== 'function')) throw badType('host.register', `the handlers of a ${kind} must be an object of functions`);
    if (kind === 'store') {
      throw refuse('UNSUPPORTED_OPERATION', 'host.register',
        'a session store cannot be supplied from JavaScript: the library reads from it while the thread that would answer waits; use a FileSessionStore', { kind });
    }
    this.#register(new Extension(kind, spec, Object.fromEntries(ops)));
  }

  /** Withdraws an extension registered here; false if there is none. */
  unregisterExtension(kind, name) {
    const key = `${String(kind)}\0${String(name)}`;
    const extension = this.#own.get(key);
    if (extension === undefined) return false;
    this.#own.delete(key);
    this.#desk.remove(this.#sessionId, extension);
    try {
      this.#native.close(extension.handle, 1000);
    } catch {
      // its session took it along
    }
    return true;
  }

  #register(extension) {
    this.#desk.listen(); // the library asks nobody who does not listen
    extension.handle = this.#native.hostRegister(this.#handle, extension.kind, encode(extension.spec, 'host.register'));
    this.#own.set(`${extension.kind}\0${extension.name}`, extension);
    this.#desk.add(this.#sessionId, extension);
  }
}

function commandContext(ctx) {
  const out = camel(ctx ?? {});
  if (Array.isArray(out.mcpServers)) out.mcpServers = out.mcpServers.map(camel);
  return out;
}

module.exports = { ExtensionOwner, serve };
