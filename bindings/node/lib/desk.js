'use strict';
// What comes back from the library beside a run's own events: the ends of started operations
// and requests to what this program supplies. Both arrive on the agent's control stream, which
// is opened when the first of them is wanted.

const { clearInterval, setImmediate, setInterval } = require('node:timers'); // not those that a test may have put in their place
const { admit, follow, traced, withCause } = require('./errors.js');
const { serve } = require('./requests.js');
const { library } = require('./native.js');
const { encode } = require('./wire.js');

const BATCHES = 4;
// A frame that found the control stream full is lost, but a result is kept until it is taken.
const SWEEP_MS = 1000;
// A longer answer is not read on the thread of the event loop.
const LONG = 64 << 10;
// How long an operation may take to notice that its agent is gone.
const LAST_MS = 10_000;

/** The control stream of one agent. It knows the agent by its handle and keeps no object alive but the owners of operations under way. */
class Desk {
  #native = library();
  #agent;
  #reader;
  #pending = new Map(); // number of the call => what waits for it
  #extensions = new Map(); // kind, session id and name => WeakRef of an extension
  #open = new Map(); // number of the request => context
  #sweeper;
  #ended = false;

  constructor(agent) {
    this.#agent = agent;
  }

  /**
   * Runs an operation and gives its decoded result. owner is kept alive until it has ended;
   * signal cancels it.
   */
  async call(handle, method, params, owner, signal) {
    admit(signal, method);
    const text = encode(params, method);
    if (this.#ended) { // its agent is closed; the operation says so itself, at once
      return JSON.parse(await this.#native.callAsync(handle, method, text, 0));
    }
    this.#listen();
    const number = this.#native.callStart(handle, method, text);
    const ended = new Promise((resolve, reject) => {
      const unfollow = follow(signal, () => this.#cancel(handle, number));
      this.#pending.set(number, {
        handle,
        owner,
        end: (err, result) => {
          unfollow();
          if (err) reject(withCause(err, signal));
          else resolve(result);
        },
      });
      this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
      this.#keepAlive();
    });
    try {
      return await ended;
    } catch (err) {
      throw traced(err);
    }
  }

  /** Lets requests reach an extension. It is held weakly: its owner holds it. */
  add(sessionId, extension) {
    this.#extensions.set(key(extension.kind, sessionId, extension.name), new WeakRef(extension));
  }

  remove(sessionId, extension) {
    this.#extensions.delete(key(extension.kind, sessionId, extension.name));
  }

  /** Opens the control stream: the library asks nobody who does not listen. */
  listen() {
    this.#listen();
  }

  /** Ends the control stream; what is under way ends with what the library says of it. */
  end() {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#reader !== undefined) this.#native.readerClose(this.#reader);
    clearInterval(this.#sweeper);
    for (const context of this.#open.values()) context.cancel('the agent was closed');
    this.#open.clear();
    for (const [number, call] of this.#pending) {
      this.#native.callWaitAsync(call.handle, number, LAST_MS).then((text) => call.end(null, JSON.parse(text)), call.end);
    }
    this.#pending.clear();
  }

  #listen() {
    if (this.#reader !== undefined || this.#ended) return;
    this.#reader = this.#native.readerOpen(this.#native.streamOpen(this.#agent, ''));
    this.#wait();
  }

  #wait() {
    this.#native.readerWait(this.#reader, () => this.#drain());
    this.#keepAlive();
  }

  /** Only operations under way keep the process alive; tools that wait for calls do not. */
  #keepAlive() {
    this.#native.readerRef(this.#reader, this.#pending.size > 0);
  }

  #drain() {
    for (let i = 0; i < BATCHES && !this.#ended; i++) {
      const text = this.#read();
      if (text === null) return this.end();
      if (text === undefined) return this.#wait();
      for (const frame of JSON.parse(text)) this.#hear(frame);
    }
    if (!this.#ended) setImmediate(() => this.#drain());
  }

  #read() {
    try {
      return this.#native.readerRead(this.#reader);
    } catch {
      return null; // the agent is gone; each operation learns why from its own handle
    }
  }

  #hear({ type, payload }) {
    switch (type) {
      case 'call_result':
        this.#settle(payload.call);
        break;
      case 'host_request':
        this.#begin(payload);
        break;
      case 'host_cancel':
        this.#open.get(payload.request)?.cancel(payload.reason);
        this.#open.delete(payload.request);
        break;
      case 'gap':
        this.#sweep();
        break;
      default: // log lines and what later versions add
    }
  }

  // --- operations ---

  #settle(number) {
    const call = this.#pending.get(number);
    if (call === undefined) return; // started by another environment
    let text;
    try {
      text = this.#native.callWait(call.handle, number, 0);
    } catch (err) {
      // A wait that ran out carries the wait's name, an operation that ran out its own.
      if (err.code === 'TIMEOUT' && err.op === 'a3s_call_wait') return;
      this.#done(number);
      call.end(err);
      return;
    }
    this.#done(number);
    call.end(null, JSON.parse(text));
  }

  #done(number) {
    this.#pending.delete(number);
    if (this.#pending.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    this.#keepAlive();
  }

  #sweep() {
    for (const number of [...this.#pending.keys()]) this.#settle(number);
  }

  #cancel(handle, number) {
    try {
      this.#native.callCancel(handle, number);
    } catch {
      // it has ended, which is what was wanted
    }
  }

  // --- requests ---

  #find({ kind, name, session_id: sessionId = '' }) {
    // Never another session's: a request may still come in when its own was withdrawn.
    return (this.#extensions.get(key(kind, sessionId, name)) ?? this.#extensions.get(key(kind, '', name)))?.deref();
  }

  #begin(request) {
    const native = this.#native;
    const context = serve(this.#find(request), request, {
      send: (piece) => native.hostChunkAsync(this.#agent, request.request, piece),
      reply: (answer) => {
        this.#open.delete(request.request);
        if (answer.length > LONG) return native.hostReplyAsync(this.#agent, request.request, answer);
        native.hostReply(this.#agent, request.request, answer);
        return undefined;
      },
    });
    if (context !== undefined) this.#open.set(request.request, context);
  }
}

function key(...parts) {
  return parts.join('\0');
}

module.exports = { Desk };
