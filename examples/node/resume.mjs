// Goes on with a conversation that another agent had: it is kept in files.
import { Agent, FileSessionStore } from '@a3s-lab/code';

const sessionStore = new FileSessionStore('sessions');

const yesterday = await Agent.create('agent.acl');
const first = await yesterday.sessionAsync('workspace', { sessionStore, sessionId: 'diary' });
await first.send('Today we measured.');
await yesterday.close(); // nothing was saved: the journal keeps what was said

const today = await Agent.create('agent.acl');
const session = await today.resumeSessionAsync('diary', { sessionStore });
await session.send('Tomorrow we cut.');
for (const { role, content } of session.history()) {
  console.log(`${role}: ${content.filter((block) => block.type === 'text').map((block) => block.text).join('')}`);
}
await today.close();
