// Is asked before a tool runs, and decides by the arguments of the call.
import { Agent, EventType } from '@a3s-lab/code';

const agent = await Agent.create('agent.acl');
const session = await agent.sessionAsync('workspace', {
  permissionPolicy: { defaultDecision: 'ask' },
  confirmationPolicy: { enabled: true },
});

for await (const event of await session.stream('Write the plan and the settings.')) {
  if (event.type === EventType.CONFIRMATION_REQUIRED) {
    const path = event.payload.args.file_path;
    console.log(`? ${event.toolName} ${path}`);
    if (path.startsWith('docs/')) {
      console.log('yes');
      await session.confirmToolUse(event.toolId, true);
    } else {
      console.log('no: only docs/ may change');
      await session.confirmToolUse(event.toolId, false, 'only docs/ may change'); // the model sees the reason
    }
  } else if (event.type === EventType.TOOL_END) {
    console.log(`${event.toolName}: exit code ${event.exitCode}`);
  } else if (event.type === EventType.AGENT_END) {
    console.log(event.text);
  } else if (event.type === EventType.ERROR) {
    throw new Error(event.error);
  }
}
await agent.close();
