// Streams a prompt and shows the answer and the tool calls as they come.
import { Agent, EventType } from '@a3s-lab/code';

const agent = await Agent.create('agent.acl');
const session = await agent.sessionAsync('workspace'); // without a policy a model may read and nothing else

for await (const event of await session.stream('What does hello.py print?')) {
  switch (event.type) {
    case EventType.TEXT_DELTA:
      process.stdout.write(event.text);
      break;
    case EventType.TOOL_START:
      console.log(`\n→ ${event.toolName}`);
      break;
    case EventType.AGENT_END:
      console.log();
      break;
    case EventType.ERROR:
      throw new Error(event.error);
  }
}
await agent.close();
