'use strict';
// libA3S for Node: an embeddable coding-agent runtime. See README.md and index.d.ts.

const { Agent } = require('./agent.js');
const { CodeError } = require('./errors.js');
const { AgentEvent, agentEventTypesV1, eventEnvelopeV1Version, formatVerificationSummary } = require('./events.js');
const { HostSessionStore, HostWorkspaceBackend, Registration } = require('./extensions.js');
const { EventType, VERSION } = require('./generated.js');
const { FileSessionStore, LocalWorkspaceBackend, MemorySessionStore } = require('./options.js');
const { ExtensionError } = require('./requests.js');
const { AgentResult, ToolResult } = require('./results.js');
const { Session } = require('./session.js');
const { EventStream } = require('./stream.js');

module.exports = {
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
};
