import { Agent, EventType, VERSION, type CodeError, type SessionOptions } from '@a3s-lab/code';

const options: SessionOptions = { permissionPolicy: { allow: ['read*'], defaultDecision: 'deny' } };

export async function ask(prompt: string): Promise<string> {
  const agent = await Agent.create('agent.acl');
  const session = await agent.sessionAsync('workspace', options);
  let answer: string = VERSION;
  for await (const event of await session.stream(prompt)) {
    if (event.type === EventType.AGENT_END) answer += event.text;
    // @ts-expect-error: no event has such a type
    if (event.type === 'no_such_event') answer += event.type;
  }
  await agent.close();
  return answer;
}

export const code = (err: CodeError): string => err.code;
