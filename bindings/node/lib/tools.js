'use strict';
// Tools that this program implements: their description, their arguments, their results.

const { createRequire } = require('node:module');
const path = require('node:path');
const { badType } = require('./errors.js');
const { ToolResult } = require('./results.js');
const { isError, named } = require('./values.js');
const { encode } = require('./wire.js');

/** A tool made of a description and a function. */
class HostTool {
  #fn;
  #standard;

  constructor(spec, fn) {
    if (typeof spec !== 'object' || spec === null) throw badType('host.register', 'registerTool takes a description {name, description, parameters, ...} and a function');
    if (typeof fn !== 'function') throw badType('host.register', `registerTool takes a function as its second argument, not ${named(fn)}`);
    const { name, description, parameters, readOnly, timeoutMs, ...unknown } = spec;
    const extra = Object.keys(unknown);
    if (extra.length > 0) throw badType('host.register', `a tool has no ${extra.map((k) => JSON.stringify(k)).join(', ')}; it has name, description, parameters, readOnly and timeoutMs`);
    this.#fn = fn;
    this.#standard = parameters?.['~standard'];
    this.spec = { name, description: description ?? name, parameters: schemaOf(parameters), read_only: readOnly, timeout_ms: timeoutMs };
  }

  /** Calls the function; gives the result as the library reads it. */
  async call({ args = {} }, context) {
    const fn = this.#fn; // no method of this object
    return resultOf(await fn(await this.#checked(args), context));
  }

  /** The arguments as the schema's own library gives them: with defaults and transforms. */
  async #checked(args) {
    if (this.#standard === undefined) return args;
    const result = await this.#standard.validate(args);
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

function resultOf(value) {
  if (isError(value)) throw value; // it was meant to be
  if (!(value instanceof ToolResult)) return { output: output(value), exit_code: 0 };
  const { output: text, exitCode, metadata, errorKind } = value;
  fits('output', text, typeof text === 'string', 'a string');
  fits('exitCode', exitCode, Number.isSafeInteger(exitCode), 'an integer');
  fits('metadata', metadata, isRecord(metadata), 'an object');
  fits('errorKind', errorKind, isRecord(errorKind), 'an object {type, ...}');
  return { output: text, exit_code: exitCode, metadata, error_kind: errorKind };
}

function isRecord(value) {
  return value === undefined || (typeof value === 'object' && !Array.isArray(value));
}

function fits(field, value, good, what) {
  if (!good) throw new TypeError(`the ${field} of a ToolResult must be ${what}, not ${typeof value === 'number' ? value : named(value)}`);
}

function output(value) {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value.toWellFormed();
  return encode(value, 'host.reply') ?? '';
}

module.exports = { HostTool };
