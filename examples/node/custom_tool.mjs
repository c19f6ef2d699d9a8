// Gives the model a tool of the program: a function with typed parameters.
import { Agent } from '@a3s-lab/code';

const agent = await Agent.create('agent.acl');
const session = await agent.sessionAsync('workspace');

session.registerTool({
  name: 'word_count',
  description: 'Counts the words of a text.',
  parameters: {
    type: 'object',
    properties: {
      text: { type: 'string', description: 'the text' },
      min_letters: { type: 'integer', description: 'count only words with so many letters or more', default: 1 },
    },
    required: ['text'],
  },
  readOnly: true,
}, ({ text, min_letters: least = 1 }) => {
  const words = text.split(/\s+/).filter((word) => word.length >= least);
  return `${words.length} words`;
});

const result = await session.send('How many long words has the motto?');
console.log(result.text);
console.log(`tool calls: ${result.toolCallsCount}`);

await agent.close();
