'use strict';
// Finds and loads the addon and, through it, the library. Both are loaded by the first
// Agent.create and not when the package is required.

const fs = require('node:fs');
const path = require('node:path');
const { errorFrom, refuse } = require('./errors.js');

const SONAME = 'liba3s.so.1';
const PLATFORM = `@a3s-lab/code-${process.platform}-${process.arch}-gnu`;

let addon;
let loading;

/** The addon with the library behind it; a CodeError if there is none. */
function library() {
  if (addon === undefined) addon = load();
  return addon;
}

/** The addon if it was loaded. */
function loaded() {
  return addon;
}

function load() {
  const file = findAddon();
  const lib = findLibrary(path.dirname(file));
  try {
    loading = require(file);
    loading.load(lib, makeError);
  } catch (err) {
    throw explain(err);
  }
  process.once('exit', () => loading.endAll(5000));
  return loading;
}

/** The root of the checkout that this package lies in, or undefined. */
function checkout() {
  const root = path.resolve(__dirname, '..', '..', '..');
  return fs.existsSync(path.join(root, 'go.mod')) ? root : undefined;
}

/** What to do where the package of a platform is not installed. */
function howToGet(platform) {
  const { optionalDependencies: published, version } = require('../package.json');
  if (platform in published) return 'it is an optional dependency of this package: install without --omit=optional';
  return `none is published for this platform: in a checkout of libA3S ${version} run ./build.sh build && node bindings/node/scripts/pack.js --out DIR, and then npm install DIR here`;
}

function findAddon() {
  const root = checkout();
  const built = root && path.join(root, 'build', 'node', 'a3s.node');
  if (built && fs.existsSync(built)) return built;
  try {
    return require.resolve(`${PLATFORM}/a3s.node`);
  } catch {
    if (!glibc()) throw missing(MUSL);
    const looked = [built, `the package ${PLATFORM}`].filter(Boolean).join('\n  ');
    const hint = root ? 'run: node bindings/node/scripts/build.js' : howToGet(PLATFORM);
    throw missing(`the native addon was not found (${hint}); looked for:\n  ${looked}`);
  }
}

/** Where the library may be: A3S_LIB alone if it is set, else beside the addon, else a checkout's build/. */
function candidates(beside) {
  const named = process.env.A3S_LIB;
  if (named) return [fs.statSync(named, { throwIfNoEntry: false })?.isDirectory() ? path.join(named, SONAME) : named];
  const root = checkout();
  return [path.join(beside, SONAME), ...(root ? [path.join(root, 'build', SONAME)] : [])];
}

function findLibrary(beside) {
  const looked = candidates(beside);
  const found = looked.find((p) => fs.statSync(p, { throwIfNoEntry: false })?.isFile());
  if (found) return fs.realpathSync(found);
  const hint = process.env.A3S_LIB ? 'A3S_LIB names no file' : `install ${PLATFORM}, set A3S_LIB, or run ./build.sh build`;
  throw missing(`the native library was not found (${hint}); looked for:\n  ${looked.join('\n  ')}`);
}

function missing(message) {
  return errorFrom({ code: 'LIBRARY_NOT_FOUND', kind: 'unsupported', status: -17, op: 'library.load', message });
}

const MUSL = 'this Node is linked with musl, which cannot load the library (it needs glibc 2.34 or newer): use a glibc based image, such as node:20-slim instead of node:20-alpine';

/** The version of glibc that this Node runs on; undefined if it is linked with musl. */
function glibc() {
  return process.report?.getReport().header.glibcVersionRuntime;
}

/** What kept the addon from loading, in the shape of the library's errors. */
function explain(err, libc = glibc()) {
  if (!libc) return missing(MUSL);
  if (err.code === 'ABI_MISMATCH' || err.code === 'INTERNAL_ERROR') return refuse(err.code, 'library.load', err.message);
  return missing(err.message);
}

function makeError(json, status) {
  let obj;
  try {
    obj = JSON.parse(json);
  } catch {
    obj = undefined;
  }
  return errorFrom(obj ?? { code: 'INTERNAL_ERROR', status, message: `the library returned ${loading.statusName(status)} without an error text` });
}

/** Ends a handle whose failure to end interests nobody. */
function closeQuietly(handle) {
  try {
    addon?.close(handle, 0);
  } catch {
    // it goes on in the background, or is gone
  }
}

// What an agent or a session holds outside of JavaScript's heap, roughly.
const WEIGHT = 256 * 1024;

const registry = new FinalizationRegistry(({ release, args }) => release(...args));
const heavy = new FinalizationRegistry(({ release, args }) => {
  addon.weigh(-WEIGHT);
  release(...args);
});

/**
 * Calls release with the arguments when nobody can reach the object any more. release is a
 * function of its module and no closure: one made in a method would keep the object alive.
 */
function whenGone(object, release, ...args) {
  registry.register(object, { release, args }, object);
}

/** whenGone is no longer needed. */
function released(object) {
  registry.unregister(object);
}

/** whenGone for an object that the garbage collector should think of as large. */
function whenHeavyGone(object, release, ...args) {
  addon.weigh(WEIGHT);
  heavy.register(object, { release, args });
}

module.exports = { howToGet, library, loaded, closeQuietly, whenGone, whenHeavyGone, released, candidates, explain };
