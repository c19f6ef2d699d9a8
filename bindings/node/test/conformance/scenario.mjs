// A scenario's file, and the folder it is played in.
import fs from 'node:fs';
import path from 'node:path';

export const VIEWS = ['commands', 'events', 'history', 'info', 'pending', 'runs', 'sessions', 'tools', 'traces'];
const SECTIONS = new Set([
  'agent.acl', 'env.json', 'files.json', 'host.json', 'host_tools.json', 'options.json', 'script', 'steps',
  'want/error', 'want/events', 'want/files.json', 'want/result.json', ...VIEWS.map((v) => `want/${v}.json`)]);

/** The sections of a txtar archive by name. */
function sections(text) {
  const found = new Map([['', '']]);
  let name = '';
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const head = /^-- (.+) --$/.exec(line);
    if (!head) {
      found.set(name, `${found.get(name)}${line}\n`);
      continue;
    }
    name = head[1].trim();
    if (!SECTIONS.has(name) && !/^(want\/)?workspace\//.test(name)) throw new Error(`there is no section ${name}`);
    if (found.has(name)) throw new Error(`section ${name} stands there twice`);
    found.set(name, '');
  }
  if (!found.get('').trim()) throw new Error('the first lines must say what the scenario shows');
  return found;
}

/** A scenario in its folder. */
export class Scenario {
  constructor(file, dir) {
    this.dir = dir;
    this.workspace = path.join(dir, 'workspace');
    this.raw = sections(fs.readFileSync(file, 'utf8'));
    fs.mkdirSync(this.workspace);
  }

  has(name) { return this.raw.has(name); }

  section(name, otherwise = '') {
    return (this.raw.get(name) ?? otherwise).replaceAll('$WORKSPACE', this.workspace).replaceAll('$DIR', this.dir).replaceAll('$UNIQUE', this.dir);
  }

  json(name, otherwise) { return this.has(name) ? JSON.parse(this.section(name)) : otherwise; }

  /** The steps as lines. */
  steps() { return this.section('steps').split('\n').map((l) => l.trim()).filter((l) => l && !l.startsWith('#')); }

  layOut() {
    let acl = this.section('agent.acl', 'default_model = "script/main"\n');
    if (!acl.includes('providers "script"')) acl += 'providers "script" { models "main" { script = "turns.txt" } }\n';
    const files = { '../agent.acl': acl, '../turns.txt': this.section('script') };
    for (const name of this.raw.keys()) if (name.startsWith('workspace/')) files[name.slice('workspace/'.length)] = this.section(name);
    for (const [name, content] of Object.entries({ ...files, ...this.json('files.json', {}) })) {
      const at = path.join(this.workspace, name);
      fs.mkdirSync(path.dirname(at), { recursive: true });
      if (typeof content === 'string') fs.writeFileSync(at, content);
      else if (content.link) fs.symlinkSync(content.link, at);
      else fs.mkdirSync(at, { recursive: true });
    }
  }

  /** Files that are not as they should be. */
  wrongFiles() {
    const want = {};
    for (const name of this.raw.keys()) if (name.startsWith('want/workspace/')) want[name.slice('want/workspace/'.length)] = this.section(name) || null;
    return Object.entries({ ...want, ...this.json('want/files.json', {}) })
      .map(([name, w]) => [name, JSON.stringify(holds(path.join(this.workspace, name))), JSON.stringify(w)])
      .filter(([, got, w]) => got !== w)
      .map(([name, got, w]) => `file ${name} is ${got}, want ${w}`);
  }
}

/** What a path holds, in the form of files.json. */
function holds(at) {
  const stat = fs.lstatSync(at, { throwIfNoEntry: false });
  if (!stat) return null;
  if (stat.isSymbolicLink()) return { link: fs.readlinkSync(at) };
  return stat.isDirectory() ? { folder: true } : fs.readFileSync(at, 'utf8');
}
