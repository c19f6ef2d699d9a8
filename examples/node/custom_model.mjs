// Brings its own model: a function that gets the conversation and answers in pieces.
import { Agent, EventType } from '@a3s-lab/code';

async function* oracle({ messages }) {
  const found = messages.at(-1).content.find((block) => block.type === 'tool_result');
  if (found) {
    yield 'The motto is:\n';
    yield found.resultContent;
  } else {
    yield 'Let me ';
    yield 'look.';
    yield { toolCall: { id: 'call-1', name: 'read', arguments: { file_path: 'motto.txt' } } };
  }
}

const agent = await Agent.create('agent.acl');
agent.registerModel('oracle', oracle); // agent.acl names it: default_model = "host/oracle"
const session = await agent.sessionAsync('workspace');

for await (const event of await session.stream('What is the motto?')) {
  if (event.type === EventType.TEXT_DELTA) process.stdout.write(event.text);
  else if (event.type === EventType.TOOL_START) console.log(`\n→ ${event.toolName}`);
  else if (event.type === EventType.AGENT_END) console.log();
  else if (event.type === EventType.ERROR) throw new Error(event.error);
}
await agent.close();
