// What objects and functions of a program must be able to do to be a model, a store and so on.
//
// Every method may be a plain or an async one. The last argument of each says what is asked and
// until when, and has a signal that is aborted when nobody waits for the answer any more. What is
// thrown is told to the library with the error's name and message, and with `kind`, `retryable`,
// `retryAfterMs` and `details` if the error has them: see `ExtensionError`. The library can be
// used in a handler, the same session included; a store alone must not wait for its session.

import type { ErrorKind } from '../generated.js';
import type {
  ContextItem, ContextQuery, LogLine, ModelChunk, ModelRequest, ModelResult, PermissionCheck, PermissionDecision, PermissionExpose,
  WorkspaceEntry, WorkspaceFound, WorkspaceSearch,
} from './hosts.js';

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

/**
 * A failure that says what it is. Any error will do; this one has room for what else the library
 * can make use of.
 */
export declare class ExtensionError extends Error {
  constructor(message: string, facts?: ExtensionFacts & { cause?: unknown });
  /** Nature of the failure, such as "not_found"; undefined if it is none of the library's. */
  readonly kind?: ErrorKind;
  /** The same request may succeed later. */
  readonly retryable?: boolean;
  /** When, in milliseconds from now. */
  readonly retryAfterMs?: number;
  /** What belongs to the kind, such as `{expected, actual}` of a conflict. */
  readonly details?: Record<string, unknown>;
}

/** What an `ExtensionError` may say beside its message. */
export interface ExtensionFacts {
  kind?: ErrorKind;
  retryable?: boolean;
  retryAfterMs?: number;
  details?: Record<string, unknown>;
}

/** A value, or a promise of it. */
export type Maybe<T> = T | Promise<T>;
/** Several values, at once or as they come. */
export type Pieces<T> = Iterable<T> | AsyncIterable<T>;
/** Bytes of any kind. What a handler is given is always a `Buffer`. */
export type Bytes = ArrayBufferView | ArrayBuffer;

// --- models ---

/**
 * A piece of an answer: a text, or `{text}`, `{reasoning}` or `{toolCall}`. An object with anything
 * else, such as `{usage, stop}`, belongs to the result that ends the answer.
 */
export type ModelPiece = string | ModelChunk | ModelResult;
/** An answer: its text, a result, or its pieces from a generator, which may return the result. */
export type ModelAnswer = string | ModelResult | undefined | Pieces<ModelPiece>;
/** Answers a conversation. A generator is ended when the run is cancelled. */
export type ModelFunction = (request: ModelRequest, context: ExtensionContext) => Maybe<ModelAnswer>;

/** A model: `stream` may answer in pieces, `complete` answers at once. One of them is enough. */
export interface ModelClient {
  stream?: ModelFunction;
  complete?(request: ModelRequest, context: ExtensionContext): Maybe<string | ModelResult>;
}

// --- policy, context, commands, logs ---

/** What becomes of a call. */
export type Decision = 'allow' | 'ask' | 'deny' | (PermissionDecision & { decision: 'allow' | 'ask' | 'deny' });
/** Judges a call before it runs. (TypeScript takes what an async function gives for any string.) */
export type CheckFunction = (request: PermissionCheck, context: ExtensionContext) => Decision | Promise<Decision | string | PermissionDecision>;

/** Judges tool calls. Whatever goes wrong in it denies the call. */
export interface PermissionChecker {
  check: CheckFunction;
  /** Whether the model is told of a tool; asked once a run for each. Without it every tool is shown that the rules do not hide. */
  expose?(request: PermissionExpose, context: ExtensionContext): Maybe<boolean>;
}

/** Items for a prompt, which is `request.query`; each has at least `id` and `content`. */
export type QueryFunction = (request: ContextQuery, context: ExtensionContext) => Maybe<Pieces<ContextItem>>;

/** Knows the background of prompts. */
export interface ContextProvider {
  query: QueryFunction;
}

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

/** Answers a slash command: `args` is what follows its name. */
export type CommandFunction = (args: string, session: CommandContext, context: ExtensionContext) => Maybe<string>;
/** Takes a line of the library's log. */
export type LogFunction = (line: LogLine, context: ExtensionContext) => unknown;

// --- stores ---

/** What a store keeps of a session. */
export interface StoredSession {
  /** The number that the last save gave; undefined without a save. */
  generation?: number;
  /** The text that the last save gave. */
  snapshot?: string;
  /** The facts of this generation, from the first wanted one on. Fewer than were wanted will do, but one at least if there are any. */
  facts?: string[];
  /** How many facts there are of this generation; undefined is that these are all. */
  count?: number;
}

/**
 * Keeps sessions: for each a snapshot and the facts that follow it, texts that are given back as
 * they were. It is asked while a session writes, so it must not wait for that session.
 */
export interface HostStore {
  /** A session from its fact number `start` on, at most `limit` facts; undefined if it is not kept. */
  load(id: string, start: number, limit: number, context: ExtensionContext): Maybe<StoredSession | undefined | null>;
  /** Keeps more facts, the first with number `start`. Those of a generation other than the snapshot's are obsolete. */
  append(id: string, generation: number, start: number, facts: string[], context: ExtensionContext): unknown;
  /** Puts a snapshot in the place of the former one and of all facts, at once or not at all. */
  save(id: string, generation: number, snapshot: string, context: ExtensionContext): unknown;
  /** Removes a session with all that is kept of it. What is not there is no failure. */
  delete(id: string, context: ExtensionContext): unknown;
  /** Ids of the sessions with a snapshot or a fact. */
  list(context: ExtensionContext): Maybe<Pieces<string>>;
  /**
   * A blob, or undefined. A store with `loadBlob`, `saveBlob` and `deleteBlob` keeps long outputs
   * of tools too; without them these are kept in memory until the session is closed or saved.
   */
  loadBlob?(id: string, blob: string, context: ExtensionContext): Maybe<Bytes | undefined | null>;
  /** Keeps a blob, once and for all. */
  saveBlob?(id: string, blob: string, data: Buffer, context: ExtensionContext): unknown;
  /** Removes a blob. What is not there is no failure. */
  deleteBlob?(id: string, blob: string, context: ExtensionContext): unknown;
}

// --- workspaces ---

/** A file: its bytes or text, and a token that changes whenever they do. */
export interface WorkspaceFile {
  data: Bytes | string;
  version: string;
  /** When it was changed, in Unix milliseconds. */
  modifiedMs?: number;
}

/** On what condition a file is written. */
export interface WriteCondition {
  /** The version that the file must still have; undefined for any. */
  ifVersion?: string;
  /** There must be no file yet. */
  ifAbsent: boolean;
}

/** How a command ended: its exit code, or more. */
export type CommandExit = number | { exitCode: number; timedOut?: boolean };

/**
 * Files for a session to work in. Paths are clean, with slashes, and relative to the root, which is
 * ".". Failures that the model should tell apart have a kind: errors of node:fs, or an
 * `ExtensionError`.
 */
export interface HostWorkspace {
  /** What is at a path: `type` and, of a file, `size`. */
  stat(path: string, context: ExtensionContext): Maybe<WorkspaceEntry>;
  /** The entries of a folder, each with its `name`. */
  list(path: string, context: ExtensionContext): Maybe<Pieces<WorkspaceEntry>>;
  /** A whole file. One of more than `max` bytes is refused whether or not it is read. */
  read(path: string, max: number, context: ExtensionContext): Maybe<WorkspaceFile>;
  /**
   * Replaces a whole file, makes missing folders, and gives the new version. Where the condition
   * does not hold throw an `ExtensionError` of kind "conflict" with details `expected` and
   * `actual`, which is "absent" where there is no file.
   */
  write(path: string, data: Buffer, condition: WriteCondition, context: ExtensionContext): Maybe<string | { version: string; modifiedMs?: number }>;
  /** Removes a file. What is not there is no failure; a folder is one, of kind "invalid". */
  remove(path: string, context: ExtensionContext): unknown;
  /**
   * Runs a shell command in the root: gives the exit code, or a generator of output that ends with
   * it. When `timeoutMs` is over, the command must be ended with all that it started, and
   * `{exitCode, timedOut: true}` says so. Without this method there is no shell.
   */
  run?(line: string, limits: { timeoutMs?: number; env: Record<string, string> }, context: ExtensionContext): Maybe<CommandExit | Pieces<Bytes | string | CommandExit>>;
  /** Finds files by name (`request.glob`) or lines by content (`request.grep`). Without this method there are no grep and glob. */
  search?(request: WorkspaceSearch, context: ExtensionContext): Maybe<WorkspaceFound>;
}

// --- transports ---

/** A request of a provider. It carries the provider's key in its headers: treat it as a secret. */
export interface TransportRequest {
  method: string;
  url: string;
  headers: Record<string, string[]>;
  body?: Buffer;
}

/** A response; one of `fetch` will do. */
export interface TransportResponse {
  status: number;
  headers?: Record<string, string> | Iterable<[string, string]>;
  body?: Bytes | string | null | Pieces<Bytes | string>;
}

/** Sends a request and gives its response. It follows no redirects: `fetch(url, {method, headers, body, signal, redirect: 'manual'})`. */
export type TransportFunction = (request: TransportRequest, context: ExtensionContext) => Maybe<TransportResponse>;

/** Sends the HTTP requests of a provider. */
export interface Transport {
  roundTrip: TransportFunction;
}
