// The program or a worker of it ends in the middle of everything.
// usage: leave.mjs FOLDER MS exit|terminate
import { createRequire } from 'node:module';
import path from 'node:path';
import { Worker, isMainThread, workerData } from 'node:worker_threads';

const [, , folder, ms, way] = process.argv;
const { Agent } = createRequire(import.meta.url)(process.env.A3S_PACKAGE);

async function forever(work) {
  for (;;) {
    try {
      await work();
    } catch { // whatever ends in the middle may fail
    }
  }
}

async function streams(home) {
  const agent = await Agent.create(path.join(home, 'agent.acl'));
  const session = await agent.sessionAsync(path.join(home, 'workspace'));
  for await (const event of await session.stream('go')) if (event.type === 'never') break;
  await agent.close();
}

async function tools(home) {
  const agent = await Agent.create(path.join(home, 'tools.acl'));
  const session = await agent.sessionAsync(path.join(home, 'workspace'), { permissionPolicy: { defaultDecision: 'allow' } });
  session.registerTool({ name: 'who', description: 'Takes its time.', parameters: { type: 'object' } }, () => new Promise((done) => { setTimeout(done, 5, 'x'); }));
  await session.send('go');
  await session.bash('sleep 0.01');
  await agent.close();
}

function everything(home) {
  for (const work of [streams, tools, streams, tools]) forever(() => work(home));
}

if (!isMainThread) {
  everything(workerData);
} else if (way === 'exit') {
  everything(folder);
  setTimeout(() => {
    console.log('end');
    process.exit(0);
  }, Number(ms));
} else {
  const worker = new Worker(new URL(import.meta.url), { workerData: folder, argv: process.argv.slice(2) });
  setTimeout(async () => {
    await worker.terminate();
    const agent = await Agent.create(path.join(folder, 'agent.acl')); // the main thread goes on
    await agent.close();
    console.log('end');
  }, Number(ms));
}
