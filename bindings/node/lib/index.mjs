// The same objects for import; there is one copy of them in a process.
import a3s from './index.js';

export const {
  Agent,
  AgentEvent,
  AgentResult,
  CodeError,
  EventStream,
  EventType,
  ExtensionError,
  FileSessionStore,
  HostSessionStore,
  HostWorkspaceBackend,
  LocalWorkspaceBackend,
  MemorySessionStore,
  Registration,
  Session,
  ToolResult,
  VERSION,
  agentEventTypesV1,
  eventEnvelopeV1Version,
  formatVerificationSummary,
} = a3s;
