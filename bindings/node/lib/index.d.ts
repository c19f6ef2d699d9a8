// The declarations of the package; what is not named here is not part of it.

/** Version of this package. */
export declare const VERSION: string;

export { EventType } from './generated.js';
export type {
  ArtifactStoreLimits, ConfirmationPolicy, ErrorCode, ErrorKind, EventPayloads, HostEnvConfig, HostKinds, PermissionPolicy,
  RetentionLimits, SessionOptions, SessionStore, WorkspaceBackend,
} from './generated.js';
/** JSON objects as the library writes them, with its spelling of keys. */
export type * as wire from './generated.js';

export { Agent } from './types/agent.js';
export { CodeError } from './types/errors.js';
export { AgentEvent, agentEventTypesV1, eventEnvelopeV1Version, formatVerificationSummary } from './types/events.js';
export type { AgentEventBase, AgentEventOf, EventMetadata } from './types/events.js';
export { HostSessionStore, HostWorkspaceBackend, Registration } from './types/extensions.js';
export type { ExtensionHandlers, ExtensionKind, ModelOptions, SchemaObject, TimeoutOption, ToolSpec } from './types/extensions.js';
export type * from './types/hosts.js';
export { FileSessionStore, LocalWorkspaceBackend, MemorySessionStore } from './types/options.js';
export type { AgentOptions, CallOptions } from './types/options.js';
export { ExtensionError } from './types/parts.js';
export type {
  Bytes, CheckFunction, CommandContext, CommandExit, CommandFunction, ContextProvider, Decision, ExtensionContext, ExtensionFacts, HostStore, HostWorkspace,
  LogFunction, Maybe, ModelAnswer, ModelClient, ModelFunction, ModelPiece, PermissionChecker, Pieces, QueryFunction, RequestContext, StoredSession,
  ToolContext, Transport, TransportFunction, TransportRequest, TransportResponse, WorkspaceFile, WriteCondition,
} from './types/parts.js';
export { AgentResult, ToolResult } from './types/results.js';
export type {
  ActiveTool, CommandInfo, ContentBlock, Message, PendingConfirmation, RunEventPage, RunSnapshot, SessionRequest, ToolArtifact, TraceEvent,
} from './types/results.js';
export { EventStream, Session } from './types/session.js';
