#!/usr/bin/env node
'use strict';
// Lays out the package of this platform: the addon and the library side by side, so that no
// compiler is needed where it is installed. It publishes nothing. On a platform that has no
// published package, npm install DIR takes the one made here.
//
// usage: pack.js --out DIR    needs ./build.sh build; makes DIR and compiles the addon into it

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const here = path.resolve(__dirname, '..');
const root = path.resolve(here, '..', '..');
const LIB = 'liba3s.so.1';
const LICENCES = 'THIRD_PARTY_LICENSES.txt';

function main([flag, dir]) {
  if (flag !== '--out' || dir === undefined) throw new Error('usage: pack.js --out DIR');
  const out = path.resolve(dir);
  const main = JSON.parse(fs.readFileSync(path.join(here, 'package.json'), 'utf8'));
  const name = `${main.name}-${process.platform}-${process.arch}-gnu`;
  execFileSync(process.execPath, [path.join(__dirname, 'build.js'), '--out', out], { stdio: ['ignore', 'ignore', 'inherit'] });
  fs.copyFileSync(path.join(root, 'build', LIB), path.join(out, LIB));
  fs.copyFileSync(path.join(root, 'LICENSE'), path.join(out, 'LICENSE'));
  const licences = path.join(root, 'build', LICENCES); // ./build.sh dist writes it
  if (fs.existsSync(licences)) fs.copyFileSync(licences, path.join(out, LICENCES));
  fs.writeFileSync(path.join(out, 'README.md'), `# ${name}\n\nThe native part of ${main.name} for ${process.platform} on ${process.arch} with glibc. Install ${main.name} instead.\n`);
  const { version, license, repository, engines } = main;
  const files = ['a3s.node', LIB, LICENCES];
  const pkg = { name, version, description: `The native part of ${main.name}`, license, repository, engines, os: [process.platform], cpu: [process.arch], libc: ['glibc'], files };
  fs.writeFileSync(path.join(out, 'package.json'), `${JSON.stringify(pkg, null, 2)}\n`);
}

main(process.argv.slice(2));
