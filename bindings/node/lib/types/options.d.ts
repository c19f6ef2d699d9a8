// Options of agents, sessions and calls, and the classes among them.

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
  /** Gives up the opening; what was opened already is closed again. */
  signal?: AbortSignal | null;
  /** Limits of the whole process: the first agent sets them. */
  limits?: { gcPercent?: number; memoryBytes?: number; threads?: number };
}

/**
 * What ends an operation early. It then rejects with code CANCELLED and the signal's reason as its
 * `cause`, once the library has stopped it. An opening is given up at once, and closed again when
 * it is done; a close goes on in the background.
 */
export interface CallOptions {
  signal?: AbortSignal | null;
}
