// Checked by tsc only: the same declarations for require.
import a3s = require('@a3s-lab/code');

export async function main(): Promise<string[]> {
  const agent: a3s.Agent = await a3s.Agent.create(new URL('file:///agent.acl'));
  const session: a3s.Session = agent.session('.');
  const events: string[] = a3s.agentEventTypesV1();
  const types: a3s.wire.EventTextDelta = { text: a3s.EventType.TEXT_DELTA };
  return [...events, types.text, session.workspace];
}
