'use strict';
// How one request to something that this program supplies is served and answered.

const { inspect } = require('node:util');
const { badType } = require('./errors.js');
const { isError, named } = require('./values.js');
const { Pieces, encode } = require('./wire.js');

// A writer that gets this many pieces ahead of the library waits.
const AHEAD = 64;

/** What a handler may know of the request it serves. See types/extensions.d.ts. */
class ExtensionContext {
  #controller = new AbortController();
  #send;
  #told = []; // pieces that were not handed in yet
  #telling; // a promise while a piece is handed in
  #over = false;
  #failure;

  constructor(request, send) {
    this.#send = send;
    this.name = request.name;
    this.sessionId = request.session_id ?? '';
    this.deadline = request.deadline_ms > 0 ? Date.now() + request.deadline_ms : undefined;
  }

  get signal() { return this.#controller.signal; }

  /** Hands in a piece of the answer. What comes after the request has ended is dropped. */
  chunk(value) {
    this.tell(encode(value === undefined ? null : value, 'host.chunk'), () => false);
  }

  /** Hands in a piece, or lets join make it part of the last one that waits. */
  tell(piece, join) {
    if (this.#over) return;
    if (this.#told.length === 0 || !join(this.#told.at(-1), piece)) this.#told.push(piece);
    this.#telling ??= this.#tell();
  }

  // The library may make the host wait while the run is behind, so this is not for the event loop.
  async #tell() {
    while (this.#told.length > 0 && !this.#over) {
      const piece = this.#told.shift();
      try {
        await this.#send(typeof piece === 'string' ? piece : encode(piece, 'host.chunk'));
      } catch (err) {
        this.#over = true; // nobody listens any more, or the piece is none
        this.#failure = err;
      }
    }
    this.#telling = undefined;
  }

  /** Waits until there is room for another piece; false if nobody wants one. */
  static async room(context) {
    if (context.#told.length >= AHEAD) await context.#telling;
    return !context.#over && !context.signal.aborted;
  }

  /** Everything that was told was handed in; nothing more is. */
  static async settle(context) {
    await context.#telling;
    context.#over = true;
    if (context.#failure?.code === 'INVALID_REQUEST') throw context.#failure;
  }

  static cancel(context, reason) {
    context.#controller.abort(new DOMException(reason || 'cancelled', 'AbortError'));
  }
}

/** The context of a tool's call. */
class ToolContext extends ExtensionContext {
  #texts = new Pieces();

  constructor(request, send) {
    super(request, send);
    this.callId = request.params?.call_id ?? '';
  }

  get toolName() { return this.name; }

  /** Tells a piece of output while the tool runs. */
  emit(text) {
    if (typeof text !== 'string') throw badType('host.chunk', `emit takes a string, not ${named(text)}`);
    this.tell({ delta: this.#texts.next(text) }, (last, piece) => {
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
  const refused = (err) => {
    if (err.code !== 'INVALID_REQUEST') return; // it was withdrawn meanwhile, and nobody waits for the answer
    try {
      host.reply(failed(err)); // the answer was too long or too deep: the request is still open
    } catch {
      // now it is withdrawn
    }
  };
  const reply = (answer) => {
    try {
      host.reply(answer)?.catch(refused);
    } catch (err) {
      refused(err);
    }
  };
  const op = extension?.ops[request.op];
  if (op === undefined) {
    reply(failed(Object.assign(new ReferenceError(`${request.kind} ${JSON.stringify(request.name)} ${extension ? `has no ${request.op}` : 'is no longer there'}`), { kind: 'unsupported' })));
    return undefined;
  }
  const context = new extension.Context(request, host.send);
  answer(op, request.params ?? {}, context).catch(failed).then(reply);
  return { cancel: (reason) => ExtensionContext.cancel(context, reason) };
}

async function answer(op, params, context) {
  try {
    const result = await op(params, context);
    if (isError(result)) throw result; // it was meant to be
    return encode({ result: result === undefined ? {} : result }, 'host.reply');
  } finally {
    await ExtensionContext.settle(context);
  }
}

/**
 * A failure that says what it is. Any error of a handler is told with its name and message; this
 * one has room for what else the library can make use of. See types/extensions.d.ts.
 */
class ExtensionError extends Error {
  constructor(message, { kind, retryable, retryAfterMs, details, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ExtensionError';
    Object.assign(this, { kind, retryable, retryAfterMs, details });
  }
}

// What the errors of node:fs and the like are, in the library's words.
const KINDS = { __proto__: null, ENOENT: 'not_found', EEXIST: 'exists', EACCES: 'denied', EPERM: 'denied', ENOTDIR: 'invalid', EISDIR: 'invalid' };

/** A failure as the library reads it: type and message, and what more an error says of itself. */
function failed(err) {
  try {
    if (!isError(err)) return failure('Error', typeof err === 'string' ? err : inspect(err));
    const { kind = KINDS[err.code], retryable, retryAfterMs, details } = err;
    return failure(err.name, `${err.message || err.name}${because(err)}`, {
      kind: typeof kind === 'string' ? kind : undefined,
      retryable: typeof retryable === 'boolean' ? retryable : undefined,
      retry_after_ms: Number.isSafeInteger(retryAfterMs) ? retryAfterMs : undefined,
      details: typeof details === 'object' && !Array.isArray(details) ? details ?? undefined : undefined, // other libraries have lists there
    });
  } catch (odd) { // an error that cannot be looked at, or whose details are no JSON
    return failure(text(() => err.name), text(() => err.message) || text(() => odd.message) || 'the error cannot be looked at');
  }
}

// What a cause may add to a message.
const MOST_WORDS = 1000;

/** ": " and the words of an error's cause, where they say more: "fetch failed" alone helps nobody. */
function because({ message, cause }) {
  if (!isError(cause)) return '';
  const words = String(cause.message || cause.code || cause.name).slice(0, MOST_WORDS);
  return String(message).includes(words) ? '' : `: ${words}`;
}

function text(read) {
  try {
    return String(read() ?? '');
  } catch {
    return '';
  }
}

function failure(type, message, more) {
  return encode({ error: { type: (String(type ?? '') || 'Error').toWellFormed(), message: String(message).toWellFormed(), ...more } }, 'host.reply');
}

module.exports = { Extension, ExtensionContext, ExtensionError, ToolContext, serve };
