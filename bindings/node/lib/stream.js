'use strict';
// The events of one run.

const { setImmediate } = require('node:timers'); // not one that a test may have put in its place
const { badType, follow } = require('./errors.js');
const { eventFrom } = require('./events.js');
const { closeQuietly, library, released, whenGone } = require('./native.js');
const { named } = require('./values.js');

// After so many batches without a pause the other callbacks of the loop get their turn.
const BATCHES = 4;

const NONE = [];

/** The events of one run in order, from its first to its terminal one. See index.d.ts. */
class EventStream {
  #native = library();
  #session; // a session that is collected would take its run along
  #run;
  #reader;
  #batch = NONE;
  #at = 0;
  #asked = 0; // calls of next that wait
  #last = Promise.resolve(); // settles with the latest of them
  #wake; // ends the wait for the library
  #drained = 0;
  #unfollow;
  #closed = false;

  constructor(session, run, signal) {
    this.#session = session;
    this.#run = run;
    try {
      this.#reader = this.#native.readerOpen(this.#native.streamOpen(run, ''));
    } catch (err) {
      closeQuietly(run);
      throw err;
    }
    whenGone(this, release, this.#native, this.#reader, run);
    if (signal) this.#follow(signal);
  }

  #follow(signal) {
    const weak = new WeakRef(this); // a signal often lives longer than a stream
    const abort = () => {
      try {
        weak.deref()?.cancel(wordsOf(signal.reason));
      } catch {
        // the run is gone, which is what was wanted
      }
    };
    this.#unfollow = follow(signal, abort);
  }

  /** The next event as {value, done}. */
  next() {
    if (this.#asked === 0 && this.#at < this.#batch.length) return Promise.resolve({ value: this.#take(), done: false });
    // Those who ask while another one waits are served in the order of their asking.
    this.#asked++;
    const mine = this.#last.then(() => this.#one()).finally(() => { this.#asked--; });
    this.#last = mine.catch(() => {});
    return mine;
  }

  async #one() {
    while (this.#at >= this.#batch.length) {
      if (this.#closed) return { value: undefined, done: true };
      await this.#fill();
    }
    return { value: this.#take(), done: false };
  }

  /** What is there, as lists of events: for programs that handle a great many. */
  async* batches() {
    try {
      for (;;) {
        const { value, done } = await this.next();
        if (done) return;
        const rest = this.#batch.slice(this.#at).map(eventFrom);
        this.#at = this.#batch.length;
        yield [value, ...rest];
      }
    } finally {
      this.close();
    }
  }

  #take() {
    return eventFrom(this.#batch[this.#at++]);
  }

  async #fill() {
    if (++this.#drained > BATCHES) {
      this.#drained = 0;
      await new Promise(setImmediate);
    }
    while (!this.#closed) {
      let text;
      try {
        text = this.#native.readerRead(this.#reader);
      } catch (err) {
        this.close();
        throw err;
      }
      if (text === null) return this.close();
      if (text !== undefined) {
        this.#batch = JSON.parse(text);
        this.#at = 0;
        return;
      }
      this.#drained = 0;
      await new Promise((resolve) => {
        this.#wake = resolve;
        this.#native.readerWait(this.#reader, resolve);
      });
      this.#wake = undefined;
    }
  }

  /** Asks the run to stop; it ends with one error event with code CANCELLED. */
  cancel(reason) {
    if (reason !== undefined && reason !== null && typeof reason !== 'string') throw badType('run.cancel', `the reason must be a string, not ${named(reason)}`);
    if (!this.#closed) this.#native.runCancel(this.#run, reason ?? '');
  }

  /** Ends this stream. The run goes on. May be called twice. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#batch = NONE;
    this.#at = 0;
    released(this);
    this.#unfollow?.();
    this.#session = undefined;
    this.#native.readerClose(this.#reader);
    closeQuietly(this.#run);
    this.#wake?.();
  }

  get closed() { return this.#closed; }

  async return(value) {
    this.close();
    return { value, done: true };
  }

  async throw(error) {
    this.close();
    throw error;
  }

  [Symbol.asyncIterator]() { return this; }

  async [Symbol.asyncDispose]() { this.close(); }
}

// What the library takes as a reason; who aborts a signal has not chosen his words for it.
const MOST_WORDS = 1000;

/** What a signal was aborted with, in words. */
function wordsOf(reason) {
  const words = typeof reason === 'object' ? reason?.message : reason;
  return typeof words === 'string' ? words.slice(0, MOST_WORDS).toWellFormed().replaceAll('\0', ' ') : '';
}

function release(native, reader, run) {
  native.readerClose(reader);
  closeQuietly(run);
}

module.exports = { EventStream };
