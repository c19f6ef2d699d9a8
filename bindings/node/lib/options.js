'use strict';
// The classes of session options. Values are checked by the library, so that every language
// refuses the same things with the same words.

const { randomUUID } = require('node:crypto');
const path = require('node:path');
const { badType, refuse } = require('./errors.js');
const { loaded } = require('./native.js');
const { hides, named } = require('./values.js');
const { encode, snake } = require('./wire.js');

/** Files, shell and git of a folder of this machine. */
class LocalWorkspaceBackend {
  constructor(root) {
    this.kind = 'local';
    this.root = root;
  }
}

/** Keeps sessions in files. The folder is made when a session is opened. */
class FileSessionStore {
  constructor(dir) {
    this.kind = 'file';
    this.dir = dir;
  }

  get backend() { return this.kind; }
}

/** Keeps sessions in memory. Save and resume with the same object: it is the store. */
class MemorySessionStore {
  constructor() {
    this.kind = 'memory';
    this.instanceId = randomUUID();
  }

  get backend() { return this.kind; }
}

/** The request that opens a session. */
function sessionRequest(start, options) {
  if (options !== undefined && options !== null && (typeof options !== 'object' || Array.isArray(options) || hides(options))) {
    throw badType('session.open', `options must be an object, not ${named(options)}`);
  }
  const cwd = currentFolder('session.open', [start.workspace, options?.workspaceBackend?.root, options?.sessionStore?.dir]);
  return encode({ ...start, options: snake(options ?? {}, 'session.open'), cwd }, 'session.open');
}

/** The folder that completes these paths; undefined if it was deleted and they are absolute. */
function currentFolder(op, paths) {
  try {
    return process.cwd();
  } catch {
    const relative = paths.find((p) => typeof p === 'string' && !path.isAbsolute(p));
    if (relative === undefined) return undefined;
    const cure = op === 'agent.open' ? 'give the option cwd' : `give an absolute path instead of ${JSON.stringify(relative)}`;
    throw refuse('IO_ERROR', op, `the current folder of this process was deleted: ${cure}, or call process.chdir before`);
  }
}

/**
 * Refuses a call that would hold up this thread until a part of this program answers, which
 * needs the thread. twin is the call that does not.
 */
function refuseToWait(op, options, twin) {
  for (const [option, what] of [['sessionStore', 'session store'], ['workspaceBackend', 'workspace']]) {
    if (options?.[option]?.kind !== 'host') continue;
    throw refuse('UNSUPPORTED_OPERATION', op, `the ${what} ${JSON.stringify(options[option].name)} is a part of this program and answers on this thread, which must not wait for it: use ${twin}`);
  }
}

// Agents through which the library is told that a store in memory is gone.
const agents = new Set();
const known = new WeakSet();
const stores = new FinalizationRegistry((instanceId) => {
  for (const handle of agents) {
    try {
      loaded().call(handle, 'agent.drop_memory_store', encode({ instance_id: instanceId }), 0);
      return;
    } catch {
      // that agent is gone; another one does as well
    }
  }
});

/** Lets the library forget a store in memory when nobody can reach it any more. */
function watch(store) {
  if (store instanceof MemorySessionStore && !known.has(store)) {
    known.add(store);
    stores.register(store, store.instanceId);
  }
}

module.exports = { LocalWorkspaceBackend, FileSessionStore, MemorySessionStore, currentFolder, refuseToWait, sessionRequest, watch, agents };
