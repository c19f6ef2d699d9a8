// Keeps a session in a store of the program's own: a map in memory.
import { Agent } from '@a3s-lab/code';

/** For each session the latest snapshot, its generation, and the facts that follow it. */
class MapStore {
  kept = new Map();

  load(id, start, limit) {
    const found = this.kept.get(id);
    return found && { ...found, facts: found.facts.slice(start, start + limit), count: found.facts.length };
  }

  append(id, generation, start, facts) {
    if (!this.kept.has(id)) this.kept.set(id, { generation, facts: [] });
    this.kept.get(id).facts.splice(start, Infinity, ...facts);
  }

  save(id, generation, snapshot) {
    this.kept.set(id, { generation, snapshot, facts: [] });
  }

  delete(id) {
    this.kept.delete(id);
  }

  list() {
    return this.kept.keys();
  }
}

const agent = await Agent.create('agent.acl');
const store = new MapStore();
const sessionStore = agent.registerSessionStore('map', store);

const session = await agent.sessionAsync('workspace', { sessionStore, sessionId: 'notebook' });
await session.send('The door code is 1234.');
await session.save();
await session.closeAsync();
for (const id of store.list()) console.log(`kept: ${id}`);

const again = await agent.resumeSessionAsync('notebook', { sessionStore });
for (const { role, content } of again.history()) {
  console.log(`${role}: ${content.filter((block) => block.type === 'text').map((block) => block.text).join('')}`);
}
await agent.close();
