import type * as wire from './generated.js';
import type { ErrorCode, ErrorKind, EventPayloads, HostKinds, SessionOptions } from './generated.js';

export {}; // only what says so is exported
export { EventType } from './generated.js';
export type {
  ArtifactStoreLimits, ConfirmationPolicy, ErrorCode, ErrorKind, EventPayloads, HostEnvConfig, HostKinds, PermissionPolicy,
  RetentionLimits, SessionOptions, SessionStore, WorkspaceBackend,
} from './generated.js';
/** JSON objects as the library writes them, with its spelling of keys. */
export type * as wire from './generated.js';

/** Version of this package. */
export declare const VERSION: string;

// --- errors ---

/**
 * Anything the library refuses or fails at. Branch on `code`, never on the text: the text is
 * for people. A bad value is a `RangeError` and a bad type a `TypeError` with the same fields;
 * `instanceof CodeError` is true for both.
 */
export declare class CodeError extends Error {
  private constructor();
  /** Stable code, such as "SESSION_BUSY". */
  readonly code: ErrorCode;
  /** Nature of the failure, such as "busy". */
  readonly kind: ErrorKind;
  /** Number of the C interface, below 0. */
  readonly status: number;
  /** Operation that failed, such as "session.save"; empty if there is none. */
  readonly op: string;
  /** The same call may succeed later, unchanged. */
  readonly retryable: boolean;
  /** Machine-readable extras: `reason`, `field`, `line` and `column` mean the same everywhere. */
  readonly details: Record<string, unknown>;
  /** What an `AbortSignal` was aborted with, if that caused the error. */
  readonly cause?: unknown;
}

// --- events ---

/** Where an event stands: the number starts at 0 in every run and rises by exactly 1. */
export interface EventMetadata {
  run_id: string;
  session_id: string;
  sequence: number;
  timestamp_ms: number;
}

/** What every event has. A convenience field is undefined where the type has none. */
export interface AgentEventBase {
  /** Version of the envelope. */
  readonly version: number;
  /** Missing on frames that are not recorded. */
  readonly metadata?: EventMetadata;
  /** `payload` as JSON text. */
  readonly payloadJson: string;
  readonly metadataJson?: string;
  /** The next piece of text for deltas, the whole answer for `agent_end`. */
  readonly text?: string;
  readonly toolName?: string;
  readonly toolId?: string;
  readonly toolOutput?: string;
  readonly exitCode?: number;
  readonly turn?: number;
  readonly prompt?: string;
  /** What went wrong, for `error`; `payload` has the code and the rest. */
  readonly error?: string;
  /** Tokens of the turn for `turn_end`, of the run for `agent_end`. */
  readonly totalTokens?: number;
  readonly verificationSummaryJson?: string;
  readonly verificationSummaryText?: string;
  /** Why a tool failed, for `tool_end`. */
  readonly errorKind?: wire.ChatErrorKind;
  readonly errorKindJson?: string;
  /** The payload as JSON text for types without convenience fields, unknown ones included. */
  readonly data?: string;
  readonly runId?: string;
  readonly sequence?: number;
}

/** The convenience fields that a type always has. */
interface Convenience {
  agent_start: { readonly prompt: string };
  planning_start: { readonly prompt: string };
  turn_start: { readonly turn: number };
  turn_end: { readonly turn: number; readonly totalTokens: number };
  text_delta: { readonly text: string };
  reasoning_delta: { readonly text: string };
  tool_start: { readonly toolId: string; readonly toolName: string };
  tool_execution_start: { readonly toolId: string; readonly toolName: string };
  tool_input_delta: { readonly text: string };
  tool_output_delta: { readonly toolId: string; readonly toolName: string; readonly text: string };
  tool_end: { readonly toolId: string; readonly toolName: string; readonly toolOutput: string; readonly exitCode: number };
  agent_end: { readonly text: string; readonly totalTokens: number; readonly verificationSummaryJson: string; readonly verificationSummaryText: string };
  error: { readonly error: string };
  confirmation_required: { readonly toolId: string; readonly toolName: string };
  permission_denied: { readonly toolId: string; readonly toolName: string };
}

/** The event of one type, such as `AgentEventOf<"tool_end">`. */
export type AgentEventOf<T extends keyof EventPayloads> = AgentEventBase & {
  readonly type: T;
  /** Everything the event carries. */
  readonly payload: EventPayloads[T];
} & (T extends keyof Convenience ? Convenience[T] : unknown);

/**
 * One event of a run, told apart by `type`. The union names the types of this version, so that
 * a `switch` can be checked for completeness; at run time the set is open, and an event of a
 * later type comes through with its payload.
 */
export type AgentEvent = { [T in keyof EventPayloads]: AgentEventOf<T> }[keyof EventPayloads];

/** The class of all events, for `instanceof`. */
export declare const AgentEvent: { readonly prototype: AgentEventBase; [Symbol.hasInstance](value: unknown): value is AgentEvent };

/** The names of the catalogue in canonical order. */
export declare function agentEventTypesV1(): string[];
/** The version of the event envelope: 1. */
export declare function eventEnvelopeV1Version(): number;
/** A verification summary (an object, or its JSON text) in one line of words. */
export declare function formatVerificationSummary(summary: wire.EventVerificationSummary | string): string;

// --- options ---

/** Files, shell and git of a folder of this machine. A relative path is relative to the folder that is current when a session is opened. */
export declare class LocalWorkspaceBackend {
  constructor(root: string);
  readonly kind: 'local';
  root: string;
}

/** Keeps sessions in files. The folder is made when a session is opened. */
export declare class FileSessionStore {
  constructor(dir: string);
  readonly kind: 'file';
  readonly backend: 'file';
  dir: string;
}

/** Keeps sessions in memory. Save and resume with the same object: it is the store. */
export declare class MemorySessionStore {
  constructor();
  readonly kind: 'memory';
  readonly backend: 'memory';
  readonly instanceId: string;
}

/** Options of `Agent.create`. */
export interface AgentOptions {
  /** What `env("NAME")` in the configuration and the processes of tools may see; default `process.env`. */
  env?: Record<string, string | undefined>;
  /** What relative paths of the configuration are relative to; default the current folder. */
  cwd?: string;
  /** Limits of the whole process: the first agent sets them. */
  limits?: { gcPercent?: number; memoryBytes?: number; threads?: number };
}

/** What ends an operation early. It then rejects with code CANCELLED, once the library has stopped it. */
export interface CallOptions {
  signal?: AbortSignal | null;
}

/** One part of a message. `type` decides which fields count. */
export interface ContentBlock {
  type: 'text' | 'tool_use' | 'tool_result' | (string & {});
  text?: string;
  id?: string;
  name?: string;
  input?: unknown;
  toolUseId?: string;
  resultContent?: string;
  isError?: boolean;
  wireId?: string;
}

/** One entry of the transcript. */
export interface Message {
  role: string;
  content: ContentBlock[];
  reasoningContent?: string;
  partial?: boolean;
}

/** The object form of a prompt. */
export interface SessionRequest {
  prompt: string;
  /** If given, the whole context of this call, which then leaves the transcript as it is. */
  history?: Message[] | null;
}

// --- results ---

/** The outcome of a turn. `String(result)` is its text. */
export declare class AgentResult {
  private constructor();
  /** Id of the run, as in `Session.runs()`. */
  readonly runId: string;
  readonly text: string;
  readonly toolCallsCount: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** `passed`, `failed`, `needs_review` or `skipped`. */
  readonly verificationStatus: string;
  readonly pendingVerificationCount: number;
  readonly failedVerificationCount: number;
  readonly verificationReportCount: number;
  readonly verificationSummaryJson: string;
  readonly verificationSummaryText: string;
  toString(): string;
}

/**
 * The outcome of a tool. A tool that fails is a result, not an exception. A tool of your own may
 * return one too, to give an exit code or metadata.
 */
export declare class ToolResult {
  constructor(fields?: { name?: string; output?: string; exitCode?: number; metadata?: Record<string, unknown>; errorKind?: wire.ChatErrorKind });
  readonly name: string;
  readonly output: string;
  /** 0 for success. */
  readonly exitCode: number;
  readonly metadata?: Record<string, unknown>;
  /** Why it failed, such as `{type: "version_conflict", ...}`. */
  readonly errorKind?: wire.ChatErrorKind;
  readonly ok: boolean;
  readonly metadataJson?: string;
  readonly errorKindJson?: string;
  toString(): string;
}

/** A run as it is recorded. `status`: created, planning, executing, verifying, completed, failed or cancelled. */
export type RunSnapshot = wire.RecordRunSnapshot;
/** A tool call that runs now. */
export type ActiveTool = wire.SessionActiveTool;
/** The summary of one tool execution. */
export type TraceEvent = wire.RecordTraceEvent;
/** A long output that was kept beside the transcript. */
export type ToolArtifact = wire.RecordArtifact;
/** A tool as the model sees it. */
export type ToolDefinition = wire.ChatToolSpec;

/** A slash command. */
export interface CommandInfo {
  name: string;
  description: string;
  usage?: string;
}

/** A call that waits for an answer. */
export interface PendingConfirmation {
  toolId: string;
  toolName: string;
  args: unknown;
  /** Milliseconds until the time-out applies; 0 for a question that waits for ever. */
  remainingMs: number;
}

/** A part of a run's recorded events. */
export interface RunEventPage {
  events: AgentEvent[];
  firstAvailableSequence: number | null;
  latestSequenceExclusive: number;
  /** For the next call. */
  nextAfterSequence: number | null;
  /** Wanted events are no longer kept. */
  retentionGap: boolean;
  hasMore: boolean;
}

// --- tools of the host ---

/** What a handler may know of the request it serves. */
export interface RequestContext {
  /** Aborted when nobody waits for the answer any more: cancelled, or past the deadline. */
  readonly signal: AbortSignal;
  /** Name that was registered. */
  readonly name: string;
  /** Session the request belongs to; empty for none. */
  readonly sessionId: string;
  /** When the answer stops counting, in Unix milliseconds; undefined for never. */
  readonly deadline?: number;
}

/** What a tool may know of the call it serves. */
export interface ToolContext extends RequestContext {
  /** Name the tool is registered under. */
  readonly toolName: string;
  /** Id of the call, as in the events. */
  readonly callId: string;
  /** Tells a piece of output while the tool runs: a `tool_output_delta` event. */
  emit(text: string): void;
}

/** What the handler of an extension may know of the request it serves. */
export interface ExtensionContext<Chunk = unknown> extends RequestContext {
  /** Hands in a piece of the answer, where the operation has pieces. */
  chunk(value: Chunk): void;
}

/** What can be supplied from JavaScript. */
export type ExtensionKind = Exclude<keyof HostKinds, 'store'>;

/** The functions that serve a kind of extension, by operation. They may be left out where the description says that the operation is not asked. */
export type ExtensionHandlers<K extends ExtensionKind> = {
  [Op in keyof HostKinds[K]['ops']]?: HostKinds[K]['ops'][Op] extends { params: infer P; result: infer R; chunk: infer C }
    ? (params: P, context: ExtensionContext<C>) => R | Promise<R>
    : never;
};

/** What a slash command may know of the session it is given in. */
export interface CommandContext {
  sessionId: string;
  workspace: string;
  model: string;
  historyLen: number;
  totalTokens: number;
  totalCost: number;
  toolNames: string[];
  mcpServers: { name: string; toolCount: number }[];
}

/** A schema object that describes arguments and checks them (zod 4 and others of the Standard Schema). */
export interface SchemaObject<Args = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown, ...rest: any[]) => unknown;
    readonly types?: { readonly input: unknown; readonly output: Args } | undefined;
  };
}

/** What a tool is. */
export interface ToolSpec<Parameters = Record<string, unknown> | undefined> {
  /** Name for the model and for rules. */
  name: string;
  /** Words for the model; default the name. */
  description?: string;
  /** JSON schema of the arguments, or a schema object; default no arguments. */
  parameters?: Parameters;
  /** The tool changes nothing anywhere: it may run in parallel, and without a policy. */
  readOnly?: boolean;
  /** Limit of one call in milliseconds; default the session's tool time-out, else 10 minutes. */
  timeoutMs?: number;
}

/** What agents and sessions share. */
declare abstract class ExtensionOwner {
  /**
   * Makes a function a tool of the model. What it returns becomes text (JSON for anything but a
   * string, a `ToolResult` for an exit code or metadata); what it throws is a failed result that
   * the model sees, with the error's name and message. It may call the session again. Every
   * call passes the permission policy under the tool's name.
   *
   * @throws {CodeError} ALREADY_EXISTS for a taken name, SESSION_CLOSED
   */
  registerTool<Args>(spec: ToolSpec<SchemaObject<Args>>, fn: (args: Args, context: ToolContext) => unknown): void;
  registerTool(spec: ToolSpec, fn: (args: any, context: ToolContext) => unknown): void;
  /** Withdraws a tool registered here and cancels its open calls; false if there is none. */
  unregisterTool(name: string): boolean;
  /**
   * Answers prompts that begin with `/name`, before any model is asked. An error is the answer's text.
   *
   * @param timeoutMs how long the answer may take; default 5000
   */
  registerCommand(name: string, description: string, handler: (args: string, context: CommandContext) => string | Promise<string>, timeoutMs?: number | null): void;
  /**
   * Supplies a part of the library: a model, a permission checker, a context provider, a
   * workspace, a receiver of log lines, and more; docs/extensions.md lists them. Descriptions,
   * parameters and results have the library's spelling of keys. What a handler throws is a
   * failure with the error's name and message, and its `kind`, `retryable`, `retryAfterMs` and
   * `details` if it has them.
   *
   * A session store cannot be supplied from JavaScript. With a workspace use the `Async`
   * functions: the others hold up the thread that must answer.
   *
   * @throws {CodeError} ALREADY_EXISTS, UNSUPPORTED_OPERATION, SESSION_CLOSED
   */
  registerExtension<K extends ExtensionKind>(kind: K, spec: HostKinds[K]['spec'], handlers: ExtensionHandlers<K>): void;
  /** Withdraws an extension registered here; false if there is none. */
  unregisterExtension(kind: ExtensionKind, name: string): boolean;
}

// --- objects ---

/**
 * The events of one run in order, from its first to its terminal one: `agent_end` or `error`.
 * After it the session is free for the next prompt. A run that fails ends with an `error` event,
 * not with an exception.
 *
 * Leaving a `for await` early closes the stream, not the run: the run goes on and holds the
 * session. `cancel()` stops it. Recorded events stay readable with `Session.runEvents`.
 */
export declare class EventStream implements AsyncIterableIterator<AgentEvent> {
  private constructor();
  /** The next event; `{done: true}` after the terminal one. */
  next(): Promise<IteratorResult<AgentEvent, undefined>>;
  /** Ends the stream; the run goes on. */
  return(value?: unknown): Promise<IteratorResult<AgentEvent, undefined>>;
  throw(error?: unknown): Promise<IteratorResult<AgentEvent, undefined>>;
  [Symbol.asyncIterator](): this;
  /** Asks the run to stop; it ends with one `error` event with code CANCELLED. Returns at once. */
  cancel(reason?: string): void;
  /** Ends the stream; the run goes on. May be called twice. */
  close(): void;
  /** Whether the stream has ended or was closed. */
  readonly closed: boolean;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A conversation in a workspace, under a policy. It runs one prompt at a time: a second one meanwhile is SESSION_BUSY, never queued. */
export declare class Session extends ExtensionOwner {
  private constructor();

  /** Id of the session, for `Agent.resumeSession`. */
  readonly sessionId: string;
  /** The workspace's root as an absolute path. */
  readonly workspace: string;
  /** What went less well when the session was opened, or null. */
  readonly initWarning: string | null;
  readonly tenantId: string | null;
  readonly principal: string | null;
  readonly agentTemplateId: string | null;
  readonly correlationId: string | null;
  /** Whether the session or its agent is closed. */
  isClosed(): boolean;

  /**
   * Runs a prompt and waits for the answer.
   *
   * @param history if given, the whole context of this call, which then leaves the transcript as it is
   * @throws {CodeError} SESSION_BUSY, SESSION_CLOSED; later what the run failed with, such as LLM_ERROR or CANCELLED
   */
  send(request: string | SessionRequest, history?: Message[] | null, options?: CallOptions): Promise<AgentResult>;
  /** Another name of `send`. */
  run(request: string | SessionRequest, history?: Message[] | null, options?: CallOptions): Promise<AgentResult>;
  sendRequest(request: SessionRequest, options?: CallOptions): Promise<AgentResult>;
  /**
   * Starts a run and gives its events. A signal cancels the run, also when nobody reads.
   *
   * @throws {CodeError} SESSION_BUSY, SESSION_CLOSED, INVALID_REQUEST; what goes wrong later is the `error` event
   */
  stream(request: string | SessionRequest, history?: Message[] | null, options?: CallOptions): Promise<EventStream>;
  streamRequest(request: SessionRequest, options?: CallOptions): Promise<EventStream>;
  /** The transcript. */
  history(): Message[];
  /** Asks the active run to stop and returns at once; false if there is none, or it was asked before. */
  cancel(): boolean;
  cancelAsync(): Promise<boolean>;
  /** Asks one run to stop; true only if it is the active one. */
  cancelRun(runId: string): Promise<boolean>;
  /** Writes one snapshot of the session to its store. Without a store it does nothing. */
  save(options?: CallOptions): Promise<void>;
  /**
   * Ends the session, does not save, and may be called twice. Afterwards records stay readable
   * and everything else is SESSION_CLOSED.
   *
   * @deprecated it holds up the event loop while the run stops; use `closeAsync`
   */
  close(): void;
  /** Ends the session: cancels its run, rejects its questions, ends its processes. Bounded by about 10 seconds. Does not save. */
  closeAsync(): Promise<void>;

  /** The runs that are kept, oldest first. */
  runs(): Promise<RunSnapshot[]>;
  /** One run; null if it is unknown. */
  runSnapshot(runId: string): Promise<RunSnapshot | null>;
  /** The recorded events of a run that are kept; empty if it is unknown. */
  runEvents(runId: string): Promise<AgentEvent[]>;
  /** A part of a run's recorded events; null if it is unknown. */
  runEventPage(runId: string, afterSequence?: number | null, limit?: number | null): Promise<RunEventPage | null>;
  /** The active run, or null. */
  currentRun(): Promise<RunSnapshot | null>;
  /** The tools running now. */
  activeTools(): Promise<ActiveTool[]>;
  /** One record for each tool execution, oldest first. */
  traceEvents(): TraceEvent[];
  /** A long output by its URI; null if there is none. It reads from the session's store. */
  getArtifact(uri: string): ToolArtifact | null;
  getArtifactAsync(uri: string): Promise<ToolArtifact | null>;

  /** The calls that wait for an answer. */
  pendingConfirmations(): Promise<PendingConfirmation[]>;
  /** Answers a `confirmation_required` event; false if no such question is open. The model sees the reason of a refusal. */
  confirmToolUse(toolId: string, approved: boolean, reason?: string | null): Promise<boolean>;
  /** Rejects all open questions and gives their number. */
  cancelConfirmations(): Promise<number>;

  /**
   * Runs a tool for this program, not for the model: the permission policy does not apply,
   * limits do. Works during a run. A tool that fails is a result with an exit code.
   */
  tool(name: string, args?: object | null, options?: CallOptions): Promise<ToolResult>;
  /** Text of a file as the tool `read` shows it. `offset` counts lines from 0. Rejects with TOOL_ERROR if the tool failed. */
  readFile(path: string, options?: ({ offset?: number; limit?: number } & CallOptions) | null): Promise<string>;
  writeFile(path: string, content: string, options?: CallOptions): Promise<ToolResult>;
  editFile(path: string, oldString: string, newString: string, replaceAll?: boolean | null, options?: CallOptions): Promise<ToolResult>;
  ls(path?: string | null, options?: CallOptions): Promise<ToolResult>;
  /** All paths that a pattern matches. Rejects with TOOL_ERROR if the tool failed. */
  glob(pattern: string, options?: CallOptions): Promise<string[]>;
  /** Lines that a regular expression matches. Rejects with TOOL_ERROR if the tool failed. */
  grep(pattern: string, options?: CallOptions): Promise<string>;
  /** Output of a shell command; its exit code is only in the result of `tool`. */
  bash(command: string, options?: CallOptions): Promise<string>;
  /** Names of the session's tools, sorted. */
  toolNames(): string[];
  toolDefinitions(): ToolDefinition[];
  /** The slash commands, sorted by name. */
  listCommands(): CommandInfo[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** A configuration that was read, with the models, tools and stores it names. Its sessions share it. */
export declare class Agent extends ExtensionOwner {
  private constructor();
  /**
   * Opens an agent; loads the native library if this is the first.
   *
   * @param configSource ACL text, or the path of a file (a line that ends in `.acl`, or a `file:` URL)
   * @throws {CodeError} CONFIG_ERROR with file, line and column in `details`; LIBRARY_NOT_FOUND; ABI_MISMATCH
   */
  static create(configSource: string | URL, options?: AgentOptions): Promise<Agent>;
  /**
   * Opens a session. No model is called and nothing is saved.
   *
   * @deprecated it holds up the event loop; use `sessionAsync`
   */
  session(workspace: string, options?: SessionOptions | null): Session;
  /**
   * Opens a session. No model is called and nothing is saved.
   *
   * @throws {CodeError} SESSION_CONFIGURATION_ERROR (a `RangeError` or `TypeError` for a bad value), SESSION_CLOSED, SESSION_BUSY
   */
  sessionAsync(workspace: string, options?: SessionOptions | null): Promise<Session>;
  /** @deprecated it holds up the event loop; use `resumeSessionAsync` */
  resumeSession(sessionId: string, options: SessionOptions): Session;
  /**
   * Opens a kept session again; `options` must carry its store. Nothing is executed: what was
   * under way when its process died is told as interrupted.
   *
   * @throws {CodeError} SESSION_ERROR if there is no such session, SESSION_BUSY if it is open elsewhere
   */
  resumeSessionAsync(sessionId: string, options: SessionOptions): Promise<Session>;
  /** Ids of the sessions that are open, sorted. */
  listSessions(): Promise<string[]>;
  /** Closes one session by its id; false if it is not open. */
  closeSession(sessionId: string): Promise<boolean>;
  /** Closes every session and the agent. Saves nothing. May be called twice. */
  close(): Promise<void>;
  isClosed(): boolean;
  /** What the configuration says that may not be meant. */
  warnings(): string[];
  [Symbol.asyncDispose](): Promise<void>;
}
