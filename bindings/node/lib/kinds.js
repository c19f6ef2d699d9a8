'use strict';
// How objects and functions of this program answer the operations of each kind: what they are
// given, and what becomes of what they give back. Kinds and operations are the library's.

const { types } = require('node:util');
const { badType } = require('./errors.js');
const { ExtensionContext, ExtensionError } = require('./requests.js');
const { hides, isError, named } = require('./values.js');
const { Pieces, fromWire, messageFrom, toWire } = require('./wire.js');

/** The methods of what serves a kind. alone names the one that a plain function is. */
function methods(kind, served, names, needs, alone) {
  const found = {};
  if (typeof served === 'function' && alone !== undefined) found[alone] = (...args) => given(served(...args));
  else if (typeof served === 'object' && served !== null) {
    for (const name of names) if (typeof served[name] === 'function') found[name] = (...args) => given(served[name](...args));
  }
  const missing = needs.filter((name) => !found[name]);
  if (missing.length > 0 || Object.keys(found).length === 0) {
    const what = `${alone === undefined ? 'an object' : 'a function or an object'} with ${needs.length > 0 ? needs.join(', ') : names.join(' or ')}`;
    const lacks = typeof served === 'object' && served !== null ? `; this one lacks ${missing.join(', ') || names.join(' and ')}` : `, not ${named(served)}`;
    throw badType('host.register', `a ${kind} is ${what}${lacks}`);
  }
  return found;
}

// --- what comes back ---

/** What a method gives. An error that is given back was meant to be thrown. */
async function given(answer) {
  const value = await answer;
  if (isError(value)) throw value;
  return value;
}

const isObject = (value) => typeof value === 'object' && value !== null;
const isBytes = (value) => ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value);
const isIterable = (value) => isObject(value) && !isBytes(value) && (Symbol.asyncIterator in value || Symbol.iterator in value);
/** A chunk without a word: its text was empty, or half of a character that waits for the other half. */
const isEmpty = (chunk) => Object.values(chunk).every((value) => value === '');

function base64(bytes) {
  return (ArrayBuffer.isView(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) : Buffer.from(bytes)).toString('base64');
}

function bytesOf(text) {
  return Buffer.from(text ?? '', 'base64');
}

/** Reads pieces of output, of which nobody but their writer knows whether they are text. */
function outputs() {
  const texts = new Pieces();
  const piece = (value) => {
    if (typeof value === 'string') return { text: texts.next(value) };
    return isBytes(value) ? { data: base64(value) } : undefined;
  };
  return Object.assign(piece, { rest: () => [{ text: texts.rest() }] });
}

function object(value) {
  if (!isObject(value) || Array.isArray(value)) throw new TypeError(`the answer must be an object, not ${named(value)}`);
  return toWire(value);
}

/** A plain value of one type, or the whole object. */
function under(key, type, value) {
  if (typeof value === type) return { [key]: value };
  if (!isObject(value) || Array.isArray(value)) throw new TypeError(`the answer must be a ${type} or an object, not ${named(value)}`);
  return toWire(value);
}

/** A list, or anything that gives its items. */
async function listed(key, value) {
  if (value === undefined || value === null) return { [key]: [] };
  if (!isObject(value)) throw new TypeError(`the answer must be a list, not ${named(value)}`);
  if (!isIterable(value)) return toWire(value);
  const items = [];
  for await (const item of value) items.push(await given(item));
  return { [key]: toWire(items) };
}

/**
 * Tells the pieces of an answer as they come, until tell says that nobody wants more; gives what
 * the result is made of: the last item that is no piece, with what a generator returns. piece
 * reads an item; its function rest gives what it has held back.
 */
async function pieces(whole, piece, tell) {
  if (!isIterable(whole)) return whole;
  const iterator = whole[Symbol.asyncIterator]?.() ?? whole[Symbol.iterator]();
  let end;
  try {
    for (;;) {
      const { value, done } = await iterator.next();
      const item = await given(value); // a list may hold promises
      const chunk = done ? undefined : piece(item);
      if (chunk !== undefined && !isEmpty(chunk) && !(await tell(chunk))) return end;
      if (chunk !== undefined) continue;
      if (hides(item)) throw new TypeError(`a piece of the answer cannot be ${named(item)}`);
      if (isObject(end) && isObject(item)) end = { ...end, ...item };
      else if (item !== undefined) end = item;
      if (!done) continue;
      for (const rest of piece.rest().filter((chunk) => !isEmpty(chunk))) await tell(rest);
      return end;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Tells pieces to the library. */
function to(context) {
  return (chunk) => {
    context.chunk(chunk);
    return ExtensionContext.room(context);
  };
}

// --- the kinds ---

const MODEL_PIECE = new Set(['text', 'reasoning', 'toolCall']);

/** Reads pieces of one answer. */
function modelPieces() {
  const [text, reasoning] = [new Pieces(), new Pieces()];
  const whole = (pieces, words) => (typeof words === 'string' ? pieces.next(words) : words);
  const piece = (value) => {
    if (typeof value === 'string') return { text: text.next(value) };
    const keys = isObject(value) ? Object.keys(value) : [];
    if (keys.length === 0 || !keys.every((key) => MODEL_PIECE.has(key))) return undefined;
    const { toolCall, ...words } = value;
    if ('text' in words) words.text = whole(text, words.text);
    if ('reasoning' in words) words.reasoning = whole(reasoning, words.reasoning);
    return toWire(toolCall === undefined ? words : { ...words, toolCall });
  };
  return Object.assign(piece, { rest: () => [{ text: text.rest() }, { reasoning: reasoning.rest() }] });
}

function modelResult(value) {
  if (value === undefined || value === null) return {};
  return under('text', 'string', value);
}

function model(served) {
  const { stream, complete } = methods('model', served, ['stream', 'complete'], [], 'stream');
  const asked = ({ messages, ...rest }) => ({ ...fromWire(rest), messages: messages.map(messageFrom) });
  const ops = {
    stream: stream && (async (params, context) => modelResult(await pieces(await stream(asked(params), context), modelPieces(), to(context)))),
    complete: complete && (async (params, context) => modelResult(await complete(asked(params), context))),
  };
  // A function answers at once as well, with all its pieces.
  if (typeof served === 'function') ops.complete = async (params, context) => modelWhole(await stream(asked(params), context));
  return { ops, spec: { stream: stream ? undefined : false } };
}

async function modelWhole(value) {
  if (!isIterable(value)) return modelResult(value);
  const said = { text: '', reasoning: '', tool_calls: [] };
  const gather = ({ text = '', reasoning = '', tool_call: call }) => {
    said.text += text;
    said.reasoning += reasoning;
    if (call) said.tool_calls.push(call);
    return true;
  };
  const end = modelResult(await pieces(value, modelPieces(), gather));
  return { ...said, ...end };
}

function permission(served) {
  const { check, expose } = methods('permission checker', served, ['check', 'expose'], ['check'], 'check');
  return {
    ops: {
      check: async (params, context) => under('decision', 'string', await check(fromWire(params), context)),
      expose: expose && (async (params, context) => under('visible', 'boolean', await expose(fromWire(params), context))),
    },
    spec: { check_only: expose ? undefined : true },
  };
}

function context(served) {
  const { query } = methods('context provider', served, ['query'], ['query'], 'query');
  return { ops: { query: async (params, ctx) => listed('items', await query(fromWire(params), ctx)) } };
}

function command(served) {
  const { run } = methods('command', served, ['run'], ['run'], 'run');
  return { ops: { run: async ({ args, ctx: session }, ctx) => under('text', 'string', (await run(args, { mcpServers: [], ...fromWire(session) }, ctx)) ?? '') } };
}

function log(served) {
  const { write } = methods('receiver of log lines', served, ['write'], ['write'], 'write');
  return { ops: { write: async (line, ctx) => { await write(fromWire(line), ctx); } } };
}

function store(served) {
  const s = methods('session store', served, ['load', 'append', 'save', 'delete', 'list', 'loadBlob', 'saveBlob', 'deleteBlob'], ['load', 'append', 'save', 'delete', 'list']);
  const blobs = s.loadBlob && s.saveBlob && s.deleteBlob;
  return {
    ops: {
      load: async ({ id, from, limit, blob }, ctx) => {
        if (blob === undefined) return toWire((await s.load(id, from, limit, ctx)) ?? {});
        const data = await s.loadBlob(id, blob, ctx);
        return data === undefined || data === null ? {} : { data: base64(data) };
      },
      append: async ({ id, generation, from, facts, blob, data }, ctx) => {
        await (blob === undefined ? s.append(id, generation, from, facts ?? [], ctx) : s.saveBlob(id, blob, bytesOf(data), ctx));
      },
      save: async ({ id, generation, snapshot }, ctx) => { await s.save(id, generation, snapshot, ctx); },
      delete: async ({ id, blob }, ctx) => { await (blob === undefined ? s.delete(id, ctx) : s.deleteBlob(id, blob, ctx)); },
      list: async (_, ctx) => listed('ids', await s.list(ctx)),
    },
    spec: { blobs: blobs ? true : undefined },
  };
}

function file({ data, ...rest }, max) {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data;
  if (!isBytes(bytes)) throw new TypeError(`a file is {data, version}, and its data bytes or a string, not ${named(data)}`);
  if (bytes.byteLength > max) throw new ExtensionError(`the file has ${bytes.byteLength} bytes, more than ${max}`, { kind: 'limit' });
  return { ...toWire(rest), data: base64(bytes) };
}

function exit(value) {
  if (value === undefined || value === null) throw new TypeError('the exit code is missing: give it as the last value');
  return under('exit_code', 'number', value);
}

function workspace(served) {
  const w = methods('workspace', served, ['stat', 'list', 'read', 'write', 'remove', 'run', 'search'], ['stat', 'list', 'read', 'write', 'remove']);
  return {
    ops: {
      stat: async ({ path }, ctx) => object(await w.stat(path, ctx)),
      list: async ({ path }, ctx) => listed('entries', await w.list(path, ctx)),
      read: async ({ path, max }, ctx) => file((await w.read(path, max, ctx)) ?? {}, max),
      write: async ({ path, data, if_version: ifVersion, if_absent: ifAbsent = false }, ctx) =>
        under('version', 'string', await w.write(path, bytesOf(data), { ifVersion, ifAbsent }, ctx)),
      remove: async ({ path }, ctx) => { await w.remove(path, ctx); },
      run: w.run && (async ({ line, timeout_ms: timeoutMs, env = {} }, ctx) => exit(await pieces(await w.run(line, { timeoutMs, env }, ctx), outputs(), to(ctx)))),
      search: w.search && (async (params, ctx) => object(await w.search(fromWire(params), ctx))),
    },
    spec: { run: w.run ? true : undefined, search: w.search ? true : undefined },
  };
}

function bodyPieces() {
  const read = outputs();
  const piece = (value) => {
    const found = read(value);
    if (found === undefined) throw new TypeError(`a body has pieces of bytes or strings, not ${named(value)}`);
    return found;
  };
  return Object.assign(piece, { rest: read.rest });
}

function transport(served) {
  const { roundTrip } = methods('transport', served, ['roundTrip'], ['roundTrip'], 'roundTrip');
  return {
    ops: {
      round_trip: async ({ body, ...request }, ctx) => {
        const response = await roundTrip({ ...request, body: body === undefined ? undefined : bytesOf(body) }, ctx);
        if (!isObject(response)) throw new TypeError(`a response is {status, headers, body}, not ${named(response)}`);
        const { status, headers, body: content } = response;
        const head = { status, headers: isObject(headers) && isIterable(headers) ? Object.fromEntries(headers) : headers ?? {} };
        if (!isIterable(content)) return { ...head, ...(content === undefined || content === null || content === '' ? {} : bodyPieces()(content)) };
        ctx.chunk(head); // status and headers go ahead of a body that comes in pieces
        await pieces(content, bodyPieces(), to(ctx));
        return {};
      },
    },
  };
}

/** Each kind: what answers it to its operations, and what can be read off for its description. */
const SERVES = { model, permission, context, command, log, store, workspace, transport };

/** The operations of what serves a kind, and its description; a TypeError for what cannot serve it. */
function answering(kind, served, spec) {
  const { ops, spec: readOff = {} } = SERVES[kind](served);
  const given = Object.fromEntries(Object.entries(spec).filter(([, v]) => v !== undefined && v !== null));
  return { spec: { ...readOff, ...given }, ops: Object.fromEntries(Object.entries(ops).filter(([, fn]) => fn !== undefined)) };
}

module.exports = { answering };
