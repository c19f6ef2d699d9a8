const { Agent, VERSION } = require('@a3s-lab/code');

async function main() {
  const agent = await Agent.create('agent.acl');
  const session = await agent.sessionAsync('workspace');
  const result = await session.send('where is the needle?');
  const [read] = (await session.history()).flatMap((message) => message.content).filter((block) => block.type === 'tool_use');
  console.log(`${VERSION} ${read.name}: ${result.text}`);
  await agent.close();
}

main();
