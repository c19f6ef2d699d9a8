// Checked by tsc only: a whole program, and what the declarations refuse.
// @ts-expect-error a class that only the declarations have
import { ExtensionOwner } from '@a3s-lab/code';
import {
  Agent, CodeError, EventType, FileSessionStore, LocalWorkspaceBackend, MemorySessionStore, ToolResult,
  type Message, type RunSnapshot, type Session, type SessionOptions, type wire,
} from '@a3s-lab/code';
import { z } from 'zod';
import { parts } from './parts.mjs';

const options: SessionOptions = {
  planningMode: 'disabled',
  autoCompact: true,
  permissionPolicy: { allow: ['read*'], defaultDecision: 'deny' },
  confirmationPolicy: { enabled: true, defaultTimeoutMs: 1000 },
  workspaceBackend: new LocalWorkspaceBackend('.'),
  sessionStore: new FileSessionStore('.a3s/sessions'),
  retentionLimits: { maxRunsRetained: 4 },
  hostEnv: { sequentialIdPrefix: 'id', fixedTimeMs: 1 },
  artifactStoreLimits: { maxBytes: 1 },
};

export async function main(): Promise<void> {
  await using agent = await Agent.create('agent.acl', { env: process.env });
  await using session: Session = await agent.sessionAsync('.', options);
  for await (const event of await session.stream('hello', null, { signal: AbortSignal.timeout(1000) })) {
    if (event.type === EventType.TEXT_DELTA) process.stdout.write(event.text);
    if (event.type === EventType.ERROR) console.error(event.error, event.payload.code);
  }
  const stream = await session.stream({ prompt: 'again', history: [] });
  const { value, done } = await stream.next();
  if (!done) console.log(value.type);
  const result = await session.send('more', session.history());
  const text: string = result.text;
  const run: RunSnapshot | undefined = (await session.runs())[0];
  const status: string | undefined = run?.status;
  const page = await session.runEventPage(result.runId, null, 10);
  const next: number | null | undefined = page?.nextAfterSequence;
  const history: Message[] = session.history();
  const kind: wire.ChatErrorKind | undefined = (await session.tool('read', { file_path: 'a' })).errorKind;
  await session.confirmToolUse('id', true);
  console.log(text, status, next, history, kind, ExtensionOwner);
  await agent.resumeSessionAsync(session.sessionId, { sessionStore: new MemorySessionStore() });

  session.registerTool({ name: 'a', parameters: { type: 'object' } }, (args, context) => {
    context.emit('half');
    context.signal.throwIfAborted();
    const left: number | undefined = context.deadline;
    return new ToolResult({ output: `${args.x}${left}`, exitCode: 1 });
  });
  agent.registerTool({ name: 'b', parameters: z.object({ city: z.string(), days: z.number().default(1) }), readOnly: true }, async (args) => {
    const city: string = args.city;
    const days: number = args.days;
    // @ts-expect-error the schema has no such field
    console.log(args.country);
    return city.repeat(days);
  });

  session.registerCommand('where', 'Says where.', (args, { workspace, mcpServers }) => `${workspace} ${args} ${mcpServers.length}`);
  agent.registerExtension('model', { name: 'mine', tool_call: false }, {
    stream: async ({ messages, max_tokens }, context) => {
      context.chunk({ text: `${messages.length} ${max_tokens ?? 0}` });
      return { stop: 'end_turn' };
    },
  });
  agent.registerExtension('permission', { name: 'judge' }, {
    check: ({ tool, effects }) => ({ decision: effects.write ? 'ask' : 'allow', reason: tool }),
    expose: () => ({ visible: true }),
  });
  agent.registerExtension('log', { name: 'lines', level: 'warn' }, { write: ({ message }) => console.log(message) });
  // @ts-expect-error a decision is needed
  agent.registerExtension('permission', { name: 'judge' }, { check: () => ({ reason: 'x' }) });
  // @ts-expect-error there is no such operation
  agent.registerExtension('log', { name: 'lines' }, { read: () => {} });
  await parts(agent);

  try {
    await session.save({ signal: null });
  } catch (err) {
    if (err instanceof CodeError && err.code === 'SESSION_ERROR') console.log(err.op, err.details['field']);
  }

  // @ts-expect-error no such option
  await agent.sessionAsync('.', { planningMod: 'auto' });
  // @ts-expect-error options of the wire's spelling are refused
  await agent.sessionAsync('.', { permission_policy: {} });
  // @ts-expect-error a number is no list of rules
  await agent.sessionAsync('.', { permissionPolicy: { allow: 3 } });
  // @ts-expect-error an agent is made by create
  new Agent();
  // @ts-expect-error an event type that is not in the catalogue
  console.log(EventType.TEXT_DELTAS);
}
