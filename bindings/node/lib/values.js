'use strict';
// What kind of thing a value is.

const { types } = require('node:util');

/** Also an error of another realm, as those of Node are in a test runner that has one of its own. */
function isError(value) {
  return value instanceof Error || types.isNativeError(value);
}

/**
 * Whether an object keeps what it holds elsewhere than in fields of its own, so that JSON would say
 * {} of it: a map, a promise that nobody waited for, an error, a response of fetch.
 */
function hides(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const proto = Object.getPrototypeOf(value);
  if (proto === null || Object.getPrototypeOf(proto) === null) return false; // a plain object, of any realm
  if (isError(value) || types.isPromise(value) || types.isGeneratorObject(value) || types.isMap(value) || types.isSet(value) || ArrayBuffer.isView(value)) return true;
  return !types.isBoxedPrimitive(value) && Object.keys(value).length === 0;
}

/** A value in the words of a message: "null", "a list", "a number", "a Map". */
function named(value) {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'a list';
  const word = hides(value) ? className(value) : typeof value;
  return `${/^[aeio]/i.test(word) ? 'an' : 'a'} ${word}`;
}

function className(value) {
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  return tag === 'Object' ? value.constructor?.name || 'object without fields' : tag;
}

module.exports = { hides, isError, named };
