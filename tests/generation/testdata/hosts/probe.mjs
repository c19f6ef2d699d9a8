// Uses what the test added, through the Node binding.
import { Agent, EventType } from '@a3s-lab/code';

const agent = await Agent.create('default_model = "offline/search"');
agent.registerExtension('probe', { name: 'p', depth: 2 }, { look: async ({ word }) => ({ seen: `Node saw ${word}` }) });
const session = agent.session('.', { probeDepth: 3 });
if (EventType.PROBE_SEEN !== 'probe_seen') throw new Error('no event');
console.log((await agent.probe({ name: 'p', word: 'hello' })).seen);
await session.close();
await agent.close();
