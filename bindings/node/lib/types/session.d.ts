// A conversation, and the events of its runs.

import type { AgentEvent } from './events.js';
import { ExtensionOwner } from './extensions.js';
import type { ToolDefinition } from './hosts.js';
import type { CallOptions } from './options.js';
import type {
  ActiveTool, AgentResult, CommandInfo, Message, PendingConfirmation, RunEventPage, RunSnapshot, SessionRequest, ToolArtifact, ToolResult, TraceEvent,
} from './results.js';

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
  /** The same events, as many at once as there are: for a program that handles a great many. Leaving it early closes the stream. */
  batches(): AsyncIterableIterator<AgentEvent[]>;
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
  /** Whether the session or its agent is closed. At the end of the process, in handlers of `exit`, both are. */
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
  /**
   * Ends the session: cancels its run, rejects its questions, ends its processes. Does not save.
   *
   * @throws {CodeError} TIMEOUT if that takes more than 10 seconds; the rest goes on in the background
   */
  closeAsync(options?: CallOptions): Promise<void>;

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
  getArtifactAsync(uri: string, options?: CallOptions): Promise<ToolArtifact | null>;

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
  /** Output of a shell command, whether or not it fails; its exit code is only in the result of `tool`, as `metadata.exit_code`. */
  bash(command: string, options?: CallOptions): Promise<string>;
  /** Names of the session's tools, sorted. */
  toolNames(): string[];
  toolDefinitions(): ToolDefinition[];
  /** The slash commands, sorted by name. */
  listCommands(): CommandInfo[];
  [Symbol.asyncDispose](): Promise<void>;
}
