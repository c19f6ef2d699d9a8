export * from './index.js';
export type * as wire from './generated.js';
