// A configuration with its models; it opens sessions.

import type { SessionOptions, SessionStore } from '../generated.js';
import { AgentExtensions } from './extensions.js';
import type { AgentOptions, CallOptions } from './options.js';
import type { Session } from './session.js';

/** A configuration that was read, with the models, tools and stores it names. Its sessions share it. */
export declare class Agent extends AgentExtensions {
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
  sessionAsync(workspace: string, options?: SessionOptions | null, call?: CallOptions): Promise<Session>;
  /** @deprecated it holds up the event loop; use `resumeSessionAsync` */
  resumeSession(sessionId: string, options: SessionOptions): Session;
  /**
   * Opens a kept session again; `options` must carry its store. Nothing is executed: what was
   * under way when its process died is told as interrupted.
   *
   * @throws {CodeError} SESSION_ERROR if there is no such session, SESSION_BUSY if it is open elsewhere
   */
  resumeSessionAsync(sessionId: string, options: SessionOptions, call?: CallOptions): Promise<Session>;
  /** Ids of the sessions that are open, sorted. */
  listSessions(): Promise<string[]>;
  /** Ids of the sessions kept in a store, open or not, sorted; a session that was never saved is among them. Without a store it looks into that of the configuration. */
  listStoredSessions(sessionStore?: SessionStore | null, call?: CallOptions): Promise<string[]>;
  /** Closes one session by its id; false if it is not open. */
  closeSession(sessionId: string, call?: CallOptions): Promise<boolean>;
  /**
   * Closes every session and the agent. Saves nothing. May be called twice.
   *
   * @throws {CodeError} TIMEOUT if that takes more than 10 seconds; the rest goes on in the background
   */
  close(): Promise<void>;
  isClosed(): boolean;
  /** What the configuration says that may not be meant. */
  warnings(): string[];
  [Symbol.asyncDispose](): Promise<void>;
}
