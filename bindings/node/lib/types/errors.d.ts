// Errors of the library as JavaScript errors.

import type { ErrorCode, ErrorKind } from '../generated.js';

export {}; // only what says so is exported

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
