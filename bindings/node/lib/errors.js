'use strict';
// Errors of the library as JavaScript errors. Nothing is guessed from text.

const { CODES, KINDS } = require('./generated.js');

const brand = Symbol('a3s.error');

/** Anything the library refuses or fails at. See index.d.ts. */
class CodeError extends Error {
  /** Also true for the RangeError and TypeError that a bad value or a bad type is. */
  static [Symbol.hasInstance](value) {
    if (this !== CodeError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && value[brand] === true;
  }
}

// details.reason names the native error that a JavaScript programmer expects.
const NATIVE = { bad_value: RangeError, bad_type: TypeError };

/** The error for an error object {code, status, kind, op, message, retryable, details}. */
function errorFrom(obj) {
  const details = typeof obj.details === 'object' && obj.details !== null ? obj.details : {};
  const code = String(obj.code || 'INTERNAL_ERROR');
  const Native = NATIVE[details.reason];
  const error = new (Native ?? CodeError)(String(obj.message || code));
  if (!Native) Object.defineProperty(error, 'name', { value: 'CodeError', configurable: true, writable: true });
  Object.defineProperty(error, brand, { value: true });
  Error.captureStackTrace(error, errorFrom);
  return Object.assign(error, {
    code,
    kind: String(obj.kind || 'internal'),
    status: Number.isInteger(obj.status) ? obj.status : KINDS.internal,
    op: String(obj.op || ''),
    retryable: Boolean(obj.retryable),
    details,
  });
}

/** An error that this package finds itself, in the shape of the library's. */
function refuse(code, op, message, details = {}) {
  const kind = CODES[code] ?? 'internal';
  return errorFrom({ code, kind, status: KINDS[kind], op, message, details });
}

/** A refusal that is a TypeError, for what never reaches the library. */
function badType(op, message, field) {
  return refuse(field ? 'SESSION_CONFIGURATION_ERROR' : 'INVALID_REQUEST', op, message, field ? { reason: 'bad_type', field } : { reason: 'bad_type' });
}

/** A refusal that is a RangeError, for what never reaches the library. */
function badValue(op, message, field) {
  return refuse(field ? 'SESSION_CONFIGURATION_ERROR' : 'INVALID_REQUEST', op, message, field ? { reason: 'bad_value', field } : { reason: 'bad_value' });
}

/** Refuses what is no AbortSignal, and to begin what an aborted one has ended already. */
function admit(signal, op) {
  if (signal === undefined || signal === null) return;
  if (typeof signal.addEventListener !== 'function') throw badType(op, 'signal must be an AbortSignal');
  if (signal.aborted) throw withCause(refuse('CANCELLED', op, 'Cancelled: the signal is aborted'), signal);
}

const followers = new WeakMap(); // signal => what is called when it is aborted

/**
 * Calls abort when the signal is aborted, until the function that this gives is called. However
 * many follow a signal it has one listener: Node warns of a leak where there are more than ten.
 */
function follow(signal, abort) {
  if (signal === undefined || signal === null) return () => {};
  const known = followers.get(signal);
  const all = known ?? new Set();
  const tell = () => { for (const one of [...all]) one(); };
  if (known === undefined) {
    signal.addEventListener('abort', tell, { once: true });
    followers.set(signal, Object.assign(all, { tell }));
  }
  all.add(abort);
  return () => {
    if (!all.delete(abort) || all.size > 0) return;
    signal.removeEventListener('abort', all.tell);
    followers.delete(signal);
  };
}

/**
 * The error with the stack of those who wait for it: it was made where an answer came in, and
 * nobody had called. For functions that are async and have waited.
 */
function traced(error) {
  if (error instanceof CodeError) Error.captureStackTrace(error, traced);
  return error;
}

/** The error, with the signal's reason as its cause if the signal caused it. */
function withCause(error, signal) {
  if (signal?.aborted && error.code === 'CANCELLED' && error.cause === undefined) {
    Object.defineProperty(error, 'cause', { value: signal.reason, configurable: true, writable: true });
  }
  return error;
}

/**
 * What the promise gives, unless the signal is aborted before: then its CANCELLED, and drop gets
 * what comes all the same. For what the library cannot stop.
 */
function unlessAborted(promise, signal, op, drop) {
  if (signal === undefined || signal === null) return promise;
  return new Promise((resolve, reject) => {
    let gone = false;
    const unfollow = follow(signal, () => {
      gone = true;
      reject(withCause(refuse('CANCELLED', op, 'Cancelled: the signal was aborted'), signal));
    });
    const settle = (end) => (value) => {
      unfollow();
      end(value);
    };
    promise.then(settle((value) => (gone ? drop(value) : resolve(value))), settle(reject));
  });
}

module.exports = { CodeError, errorFrom, refuse, badType, badValue, admit, follow, traced, unlessAborted, withCause };
