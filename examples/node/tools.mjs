// Runs tools for the program itself, without a model.
import { Agent } from '@a3s-lab/code';

const agent = await Agent.create('agent.acl');
const session = await agent.sessionAsync('workspace');

process.stdout.write(await session.readFile('motto.txt'));
process.stdout.write(await session.grep('cut'));
for (const path of await session.glob('**/*.py')) console.log(path);

const listing = await session.tool('ls', { path: 'src' });
process.stdout.write(listing.output);

// A tool that fails is a result, not an exception.
const absent = await session.tool('read', { file_path: 'absent.txt' });
console.log(`read: exit code ${absent.exitCode}: ${absent.output}`);

await agent.close();
