import { Agent, EventType, VERSION } from '@a3s-lab/code';

const agent = await Agent.create('agent.acl');
const session = await agent.sessionAsync('workspace');
process.stdout.write(`${VERSION} `);
for await (const event of await session.stream('where is the needle?')) {
  if (event.type === EventType.TOOL_START) process.stdout.write(`${event.toolName}: `);
  else if (event.type === EventType.AGENT_END) console.log(event.text);
}
await agent.close();
