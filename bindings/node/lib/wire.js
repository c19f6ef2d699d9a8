'use strict';
// JSON on its way in and out of the library, and the two spellings of its keys.

const { CodeError, badType, badValue } = require('./errors.js');
const { OPAQUE } = require('./generated.js');
const { hides, named } = require('./values.js');

// What the library takes; more would be refused there.
const DEEPEST = 64;

/** Encodes a request. What JSON cannot say is refused instead of being dropped. */
function encode(value, op) {
  try {
    return JSON.stringify(value, (key, v) => check(v, key, op));
  } catch (err) {
    if (err instanceof CodeError) throw err;
    const words = String(err?.message ?? err).split('\n')[0]; // a getter may throw anything
    throw err instanceof RangeError ? badValue(op, `Invalid request: ${words}`) : badType(op, `Invalid request: ${words}`);
  }
}

function check(v, key, op) {
  switch (typeof v) {
    case 'string':
      if (!v.isWellFormed()) throw badValue(op, `Invalid request: ${where(key)} is not valid Unicode: it holds half of a character`);
      return v;
    case 'number':
      if (!Number.isFinite(v)) throw badValue(op, `Invalid request: ${where(key)} is ${v}, which JSON cannot say`);
      return v;
    case 'bigint':
    case 'function':
    case 'symbol':
      throw badType(op, `Invalid request: ${where(key)} is a ${typeof v}, which JSON cannot say`);
    case 'object':
      return said(v, key, op);
    default:
      return v;
  }
}

/** An object as it is, unless JSON would say {} of it. */
function said(v, key, op) {
  if (hides(v)) throw badType(op, `Invalid request: ${where(key)} is ${named(v)}, which JSON cannot say`);
  return v;
}

function where(key) {
  return key === '' ? 'the value' : JSON.stringify(key);
}

/** Texts that come in pieces, which may be cut within a character: its first half waits for the second. */
class Pieces {
  #half = '';

  /** The next piece as well-formed text. */
  next(text) {
    const all = this.#half + text;
    this.#half = /[\ud800-\udbff]$/.test(all) ? all.at(-1) : '';
    return all.slice(0, all.length - this.#half.length).toWellFormed();
  }

  /** What is left at the end, where no second half came. */
  rest() {
    return this.#half === '' ? '' : this.next(' ').slice(0, -1);
  }
}

/** The wire's spelling of one key. */
function snakeKey(key) {
  return key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
}

/** The JavaScript spelling of one key. */
function camelKey(key) {
  return key.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase());
}

/**
 * Options in the wire's spelling, at every depth. A key that is spelled as on the wire is
 * refused: with two spellings of one option the last would win.
 */
function snake(value, op, depth = 0, name = '') {
  if (depth > DEEPEST) throw badValue(op, `Invalid request: it is nested deeper than ${DEEPEST}`);
  if (Array.isArray(value)) return value.map((v) => snake(v, op, depth + 1, name));
  if (typeof value !== 'object' || value === null) return value;
  if (hides(value)) throw badType(op, `Invalid session configuration for '${name}': it cannot be ${named(value)}`, snakeKey(name));
  const out = {};
  for (const [key, v] of Object.entries(value)) {
    if (key.includes('_')) throw badValue(op, `Invalid session configuration for '${key}': write ${camelKey(key)}`, key);
    if (v !== undefined) out[snakeKey(key)] = snake(v, op, depth + 1, key);
  }
  return out;
}

/** The fields of one object in JavaScript's spelling; their values are left as they are. */
function camel(obj) {
  const out = {};
  for (const [key, v] of Object.entries(obj)) out[camelKey(key)] = v;
  return out;
}

/** What a handler is given, in JavaScript's spelling at every depth; what is somebody's own stays as it is. */
function fromWire(value) {
  if (Array.isArray(value)) return value.map(fromWire);
  if (typeof value !== 'object' || value === null) return value;
  const out = {};
  for (const [key, v] of Object.entries(value)) out[camelKey(key)] = OPAQUE.has(key) ? v : fromWire(v);
  return out;
}

/** What a handler gives back, in the wire's spelling at every depth; what is somebody's own stays as it is. */
function toWire(value, depth = 0, name = '') {
  if (depth > DEEPEST) throw badValue('host.reply', `Invalid request: it is nested deeper than ${DEEPEST}`);
  if (Array.isArray(value)) return value.map((v) => toWire(v, depth + 1, name));
  if (typeof value !== 'object' || value === null || typeof value.toJSON === 'function') return value;
  const out = {};
  for (const [field, v] of Object.entries(said(value, name, 'host.reply'))) {
    const key = snakeKey(field);
    out[key] = OPAQUE.has(key) ? v : toWire(v, depth + 1, field);
  }
  return out;
}

/** A message of the transcript as JavaScript has it. */
function messageFrom(m) {
  const out = camel(m);
  out.content = (m.content ?? []).map((b) => {
    const { content, ...rest } = b;
    const block = camel(rest);
    if (content !== undefined) block.resultContent = content;
    return block;
  });
  return out;
}

/** A message as the library reads it. */
function messageTo(m) {
  if (typeof m !== 'object' || m === null) return m;
  const out = {};
  for (const [key, v] of Object.entries(m)) out[snakeKey(key)] = v;
  if (Array.isArray(m.content)) out.content = m.content.map(blockTo);
  return out;
}

function blockTo(b) {
  if (typeof b !== 'object' || b === null) return b;
  const out = {};
  for (const [key, v] of Object.entries(b)) out[key === 'resultContent' ? 'content' : snakeKey(key)] = v;
  return out;
}

module.exports = { Pieces, encode, snake, camel, fromWire, toWire, messageFrom, messageTo };
