// Checked by tsc only: what a program supplies, in its natural shapes.
import { ExtensionError, type Agent, type HostStore, type HostWorkspace, type Message, type Registration, type StoredSession } from '@a3s-lab/code';

class Store implements HostStore {
  kept = new Map<string, StoredSession & { facts: string[] }>();
  load(id: string) { return this.kept.get(id); }
  async append(id: string, generation: number, start: number, facts: string[]) { console.log(id, generation, start, facts); }
  save(id: string, generation: number, snapshot: string) { this.kept.set(id, { generation, snapshot, facts: [] }); }
  delete(id: string) { this.kept.delete(id); }
  list() { return this.kept.keys(); }
}

const files: HostWorkspace = {
  stat: () => ({ type: 'file', size: 1, modifiedMs: 2 }),
  async *list() { yield { name: 'a', type: 'dir' }; },
  read: async (path, max) => ({ data: Buffer.alloc(max), version: path }),
  write: (_path, data, { ifVersion, ifAbsent }) => {
    if (ifAbsent) throw new ExtensionError('there is one', { kind: 'conflict', details: { expected: 'absent', actual: ifVersion } });
    return data.toString('hex');
  },
  remove: () => {},
  async *run(line, { timeoutMs, env }) { yield `${line}${timeoutMs ?? 0}${env.HOME ?? ''}`; yield new Uint8Array(1); yield { exitCode: 0, timedOut: false }; },
};

export async function parts(agent: Agent): Promise<void> {
  agent.registerModel('mine', async function* ({ messages, maxTokens }, { signal }) {
    const last: Message | undefined = messages.at(-1);
    signal.throwIfAborted();
    yield `${last?.content[0]?.resultContent ?? ''}${maxTokens ?? 0}`;
    yield { toolCall: { name: 'read', arguments: { file_path: 'a' } } };
    return { usage: { promptTokens: 1, completionTokens: 1, totalTokens: 2 }, stop: 'end_turn' };
  }, { context: 8000, toolCall: true, timeoutMs: 1000 });
  agent.registerModel('short', { complete: () => 'yes' });
  agent.registerPermissionChecker(({ tool, effects, callId }) => (effects.write ? { decision: 'deny', reason: tool + callId } : 'allow'));
  // @ts-expect-error there is no such decision
  agent.registerPermissionChecker(() => 'perhaps');
  agent.registerContextProvider('issues', ({ query, maxResults }) => [{ id: '1', content: query, tokenCount: maxResults }]);
  agent.registerLog(({ level, sessionId }) => console.log(level, sessionId), { level: 'warn' });
  agent.registerTransport('proxy', async ({ method, url, headers, body }, { signal }) => fetch(url, { method, headers: Object.entries(headers).map(([k, v]) => [k, v.join(', ')]), body: body ?? null, signal }));
  agent.registerTransport('own', { roundTrip: () => ({ status: 200, headers: { a: 'b' }, body: ['one', Buffer.from('two')] }) });
  const sessionStore = agent.registerSessionStore('map', new Store());
  const workspaceBackend = agent.registerWorkspace('files', files, { root: 'notebook:' });
  // @ts-expect-error it cannot be written to
  agent.registerSessionStore('half', { load: () => undefined });
  const session = await agent.sessionAsync('.', { sessionStore, workspaceBackend, model: 'host/mine' });
  const command: Registration = session.registerCommand('where', 'Says where.', (args, { workspace }, { signal }) => `${workspace}${args}${signal.aborted}`, { usage: '/where', timeoutMs: 5 });
  command.close();
  using checker = session.registerPermissionChecker({ check: async () => 'ask', expose: () => true }, { name: 'second' });
  console.log(checker.name, await agent.listStoredSessions(sessionStore));
}
