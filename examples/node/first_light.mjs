// Asks a question about a folder of code and prints the answer as it comes.
//
// usage: node first_light.mjs [PROMPT] [--workspace DIR] [--config agent.acl]
//
// Nothing is changed: the policy allows reading only. Without a configuration no model is used;
// the workspace is searched for the words of the prompt instead, and the program says so.
import { createRequire } from 'node:module';
import path from 'node:path';
import { parseArgs } from 'node:util';

// In a program of your own: import { Agent, ... } from '@a3s-lab/code';
const { Agent, CodeError, EventType, FileSessionStore } = createRequire(import.meta.url)('../../bindings/node');

const QUESTION = 'Where does this project parse its configuration? Do not change files.';
const OFFLINE = 'default_model = "offline/search"\n';

/** Reading is allowed, everything else is not; the session is kept beside the code. */
const options = (workspace) => ({
  planningMode: 'disabled',
  autoCompact: true,
  permissionPolicy: {
    allow: ['read*', 'ls*', 'glob*', 'grep*', 'code_*'],
    deny: ['write*', 'edit*', 'patch*', 'bash*', 'git*'],
    defaultDecision: 'deny',
  },
  sessionStore: new FileSessionStore(path.join(workspace, '.a3s', 'sessions')),
});

/** Prints the events of one run; false if it failed. */
async function ask(session, prompt) {
  let ok = false;
  for await (const event of await session.stream(prompt)) {
    switch (event.type) {
      case EventType.TEXT_DELTA:
        process.stdout.write(event.text);
        break;
      case EventType.TOOL_START:
        console.log(`\n→ ${event.toolName}`);
        break;
      case EventType.PERMISSION_DENIED:
        console.log(`  not allowed: ${event.payload.reason}`);
        break;
      case EventType.ERROR:
        console.error(`\nfailed: ${event.error}`);
        break;
      case EventType.AGENT_END:
        ok = true;
        break;
    }
  }
  return ok;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { workspace: { type: 'string', default: '.' }, config: { type: 'string' } },
  });
  const workspace = path.resolve(values.workspace);
  if (values.config === undefined) console.log('no --config: nothing is asked of a model, the workspace is searched for the words of the prompt\n');
  const agent = await Agent.create(values.config ?? OFFLINE);
  try {
    const session = await agent.sessionAsync(workspace, options(workspace));
    const ok = await ask(session, positionals[0] ?? QUESTION);
    const run = (await session.runs()).at(-1);
    await session.save();
    console.log(`\n\nrun ${run.id}: ${run.status}; session ${session.sessionId} is saved in ${path.join(workspace, '.a3s', 'sessions')}`);
    return ok ? 0 : 1;
  } finally {
    await agent.close();
  }
}

try {
  process.exitCode = await main();
} catch (err) {
  if (!(err instanceof CodeError)) throw err;
  console.error(`${err.code}: ${err.message}`);
  process.exitCode = 1;
}
