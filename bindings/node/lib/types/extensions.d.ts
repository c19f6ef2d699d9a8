// How a program supplies parts of the library. The parts themselves are in parts.d.ts.

import type { HostKinds } from '../generated.js';
import type {
  CheckFunction, CommandFunction, ContextProvider, ExtensionContext, HostStore, HostWorkspace, LogFunction, ModelClient, ModelFunction, PermissionChecker,
  QueryFunction, ToolContext, Transport, TransportFunction,
} from './parts.js';

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

/** What can be supplied. */
export type ExtensionKind = keyof HostKinds;

/** The functions that serve a kind of extension, by operation. They may be left out where the description says that the operation is not asked. */
export type ExtensionHandlers<K extends ExtensionKind> = {
  [Op in keyof HostKinds[K]['ops']]?: HostKinds[K]['ops'][Op] extends { params: infer P; result: infer R; chunk: infer C }
    ? (params: P, context: ExtensionContext<C>) => R | Promise<R>
    : never;
};

/**
 * Something that is registered. It stays while its session or agent is open, also when nobody
 * holds this object.
 */
export declare class Registration {
  protected constructor();
  /** Name it is registered under. */
  readonly name: string;
  /** Takes it back and cancels what it is serving. May be called twice. */
  close(): void;
  [Symbol.dispose](): void;
}

/** A session store that is registered: a value for the option `sessionStore`. */
export declare class HostSessionStore extends Registration {
  private constructor();
  readonly kind: 'host';
  readonly backend: 'host';
}

/** A workspace that is registered: a value for the option `workspaceBackend`. */
export declare class HostWorkspaceBackend extends Registration {
  private constructor();
  readonly kind: 'host';
}

/** How long a handler may take. */
export interface TimeoutOption {
  /** Limit of one answer in milliseconds; after it the answer is dropped. */
  timeoutMs?: number | null;
}

/** The description of a model. */
export interface ModelOptions extends TimeoutOption {
  /** Size of its window in tokens; default 200000. */
  context?: number;
  /** Bound of an answer in tokens; default none. */
  output?: number;
  /** Whether it can call tools; default true. */
  toolCall?: boolean;
  /** Whether it takes a thinking budget; default false. */
  reasoning?: boolean;
  /** false asks `complete`; default true where there is `stream`. */
  stream?: boolean;
}

/**
 * What agents and sessions share. What is registered with an agent serves all its sessions.
 *
 * Each function throws a `TypeError` for an object that lacks a method, and `CodeError`
 * ALREADY_EXISTS for a taken name, SESSION_CLOSED, INVALID_REQUEST.
 */
export declare abstract class ExtensionOwner {
  /**
   * Makes a function a tool of the model. What it returns becomes text (JSON for anything but a
   * string, a `ToolResult` for an exit code or metadata; what JSON would say `{}` of, such as a
   * map or a response of `fetch`, is refused); what it throws, or an error that it returns, is a
   * failed result that the model sees, with the error's name and message. It may call the session again. Every call passes the
   * permission policy under the tool's name.
   */
  registerTool<Args>(spec: ToolSpec<SchemaObject<Args>>, fn: (args: Args, context: ToolContext) => unknown): Registration;
  registerTool(spec: ToolSpec, fn: (args: any, context: ToolContext) => unknown): Registration;
  /** Withdraws a tool registered here and cancels its open calls; false if there is none. */
  unregisterTool(name: string): boolean;
  /**
   * Has every tool call judged by this program. With a permission policy the strictest word of
   * both counts; without one this takes the place of the default. A failure, and no answer within
   * 5 seconds, is "deny".
   *
   * @param options `name` tells several apart; default "checker", for a session "session-checker"
   */
  registerPermissionChecker(checker: PermissionChecker | CheckFunction, options?: (TimeoutOption & { name?: string }) | null): Registration;
  /** Gives background to prompts, which the system prompt quotes as untrusted data. What fails or takes more than 5 seconds is left out. */
  registerContextProvider(name: string, provider: ContextProvider | QueryFunction, options?: TimeoutOption | null): Registration;
  /**
   * Answers prompts that begin with `/name`, before any model is asked. An error is the answer's text.
   *
   * @param options how long the answer may take in milliseconds, default 5000; or that and `usage`, which shows how it is called
   */
  registerCommand(name: string, description: string, handler: CommandFunction, options?: number | (TimeoutOption & { usage?: string }) | null): Registration;
  /**
   * Receives the library's log lines, one at a time. Lines that it does not take within a second
   * are dropped.
   *
   * @param options `level` is the least level, default the agent's; `name` tells several apart, default "log", for a session "session-log"
   */
  registerLog(handler: LogFunction | { write: LogFunction }, options?: (TimeoutOption & { name?: string; level?: 'debug' | 'info' | 'warn' | 'error' }) | null): Registration;
  /**
   * Supplies a part of the library of any kind, in the library's own words: docs/extensions.md
   * lists the kinds, descriptions and operations. A handler that gives undefined gives an empty
   * result; what it throws is a failure as of the other functions.
   */
  registerExtension<K extends ExtensionKind>(kind: K, spec: HostKinds[K]['spec'], handlers: ExtensionHandlers<K>): Registration;
  /** Withdraws an extension registered here; false if there is none. */
  unregisterExtension(kind: ExtensionKind, name: string): boolean;
}

/** What only agents take: it must be there before the session that names it opens. */
export declare abstract class AgentExtensions extends ExtensionOwner {
  /** Supplies a model, to be named `host/NAME` in `default_model` or the option `model`. It has 10 minutes for an answer. */
  registerModel(name: string, client: ModelClient | ModelFunction, options?: ModelOptions | null): Registration;
  /**
   * Supplies a session store. A store that fails, or takes more than 30 seconds, is SESSION_ERROR.
   * What would hold up the thread that must answer (`Agent.session`, `Session.close`) is refused
   * with UNSUPPORTED_OPERATION: use the `Async` functions.
   */
  registerSessionStore(name: string, store: HostStore, options?: TimeoutOption | null): HostSessionStore;
  /**
   * Supplies a workspace; an answer may take a minute. Use the `Async` functions to open sessions in it.
   *
   * @param options `root` is what people and models are told of the place, default "host:NAME"; `run` and `search` say whether there are a shell, and grep and glob: default whether there is such a method
   */
  registerWorkspace(name: string, workspace: HostWorkspace, options?: (TimeoutOption & { root?: string; run?: boolean; search?: boolean }) | null): HostWorkspaceBackend;
  /** Sends the HTTP requests of a provider whose key `transport` is "host/NAME". It has 10 minutes for a response. */
  registerTransport(name: string, transport: Transport | TransportFunction, options?: TimeoutOption | null): Registration;
}
