// The types of what the test added.
import { EventType, type Agent, type SessionOptions } from '@a3s-lab/code';
import type { EventProbeSeen, AgentProbeAnswer, AgentProbeQuestion, Probed } from '../../lib/generated.js';

export const seen: EventProbeSeen = { seen: EventType.PROBE_SEEN };
export const answer = (q: AgentProbeQuestion): AgentProbeAnswer => ({ seen: q.word });
export const options: SessionOptions = { probeDepth: 3 };
export const result: Probed = { seen: 'word' };
export const register = (agent: Agent) => agent.registerExtension('probe', { name: 'p', depth: 2 }, { look: answer });
