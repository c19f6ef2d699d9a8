#!/usr/bin/env node
'use strict';
// Compiles the addon with gcc against the headers of the Node that runs this; the library
// itself is not needed for it. node-gyp is not needed either: N-API is plain C.
//
// usage: build.js [--out DIR]    default: build/node of the checkout

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const here = path.resolve(__dirname, '..');
const root = path.resolve(here, '..', '..');

function headers() {
  const places = [process.env.NODE_INCLUDE, path.resolve(fs.realpathSync(process.execPath), '..', '..', 'include', 'node'), '/usr/include/node'];
  const found = places.find((p) => p && fs.existsSync(path.join(p, 'node_api.h')));
  if (found) return found;
  throw new Error(`node_api.h was not found in ${places.filter(Boolean).join(', ')}; set NODE_INCLUDE, or install Node with its headers`);
}

function main(args) {
  const out = args[0] === '--out' ? path.resolve(args[1]) : path.join(root, 'build', 'node');
  const sources = ['library.c', 'addon.c', 'tasks.c', 'reader.c'].map((f) => path.join(here, 'src', f));
  const file = path.join(out, 'a3s.node');
  fs.mkdirSync(out, { recursive: true });
  execFileSync(process.env.CC || 'gcc', [
    '-std=c11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-pedantic', '-Werror', '-O2', '-fPIC', '-fvisibility=hidden', '-shared',
    '-isystem', headers(), '-I', path.join(root, 'include'), '-Wl,-soname,a3s.node', '-Wl,-z,relro,-z,now',
    '-Wl,-z,nodelete', // Node unloads an addon with the worker that loaded it, but libuv still holds our signal handle
    '-o', `${file}.tmp`, ...sources, '-ldl', '-lpthread',
  ], { stdio: 'inherit' });
  fs.renameSync(`${file}.tmp`, file); // a program that runs keeps the file it has mapped
  process.stderr.write(`built ${path.relative(process.cwd(), file)} (${fs.statSync(file).size} bytes)\n`);
}

main(process.argv.slice(2));
