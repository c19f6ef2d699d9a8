// The scenarios that all languages share; see tests/conformance/README.md.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test, { after } from 'node:test';

import { ROOT, leavesNothing } from './place.mjs';
import { Play } from './conformance/play.mjs';

leavesNothing();

const scenarios = path.join(ROOT, 'tests', 'conformance', 'scenarios');
const files = fs.readdirSync(scenarios).filter((f) => f.endsWith('.txtar')).sort();
const results = {};
const descriptors = () => fs.readdirSync('/proc/self/fd').length;
let before;

for (const file of files) {
  const name = path.basename(file, '.txtar');
  test(name, async () => {
    const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'a3s-scenario-')));
    const cwd = process.cwd();
    results[name] = 'fail';
    try {
      process.chdir(dir);
      await new Play(path.join(scenarios, file), dir).run();
      results[name] = 'pass';
    } finally {
      process.chdir(cwd);
      fs.rmSync(dir, { recursive: true, force: true });
    }
    before ??= descriptors(); // the first play opens what the runtime keeps for good
  });
}

test('no descriptor is left', () => {
  const now = descriptors();
  assert.ok(now <= before, `${before} descriptors after the first scenario, ${now} after the last`);
});

after(() => {
  const out = path.join(ROOT, 'build');
  fs.mkdirSync(out, { recursive: true });
  fs.writeFileSync(path.join(out, 'conformance-node.json'), `${JSON.stringify(results, null, 2)}\n`);
});
