'use strict';
// What callers give, checked where they gave it and told in the words of this package.

const { badType, refuse } = require('./errors.js');
const { hides, named } = require('./values.js');

/** The options of a function; it has these. A name that it does not have is refused: a typo must not pass for silence. */
function optionsOf(what, op, options, names) {
  if (options === undefined || options === null) return {};
  if (typeof options !== 'object' || Array.isArray(options) || hides(options)) throw badType(op, `the options of ${what} are an object {${names.join(', ')}}, not ${named(options)}`);
  const extra = Object.keys(options).filter((k) => !names.includes(k));
  if (extra.length > 0) throw badType(op, `${what} has no option ${extra.map((k) => JSON.stringify(k)).join(', ')}; it has ${names.join(', ')}`);
  return options;
}

/** The signal among the options of a call. */
function signalOf(options, op) {
  return optionsOf('this call', op, options, ['signal']).signal ?? undefined;
}

/** Refuses an argument that is no string; gives the arguments. */
function texts(op, given) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null) throw bad(op, name, 'bad_type', 'is missing: it must be a string');
    if (typeof value !== 'string') throw bad(op, name, 'bad_type', `must be a string, not ${named(value)}`);
  }
  return given;
}

/** Refuses an argument that is no string with something in it; gives the arguments. */
function ids(op, given) {
  for (const [name, value] of Object.entries(texts(op, given))) if (value === '') throw bad(op, name, 'bad_value', 'is empty');
  return given;
}

function bad(op, field, reason, words) {
  return refuse('INVALID_REQUEST', op, `${field} ${words}`, { field, reason });
}

module.exports = { ids, optionsOf, signalOf, texts };
