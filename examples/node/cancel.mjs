// Stops a run that takes too long.
import { Agent, EventType } from '@a3s-lab/code';

const agent = await Agent.create('agent.acl');
const session = await agent.sessionAsync('workspace');

const stop = new AbortController();
for await (const event of await session.stream('Count to a million.', null, { signal: stop.signal })) {
  if (event.type === EventType.TEXT_DELTA) {
    console.log(event.text);
    stop.abort(); // or session.cancel(); read on, since a run always ends with one terminal event
  } else if (event.type === EventType.ERROR) {
    console.log(`error: ${event.payload.code}`);
  }
}
const [run] = await session.runs();
console.log(`run: ${run.status}`);

await agent.close();
