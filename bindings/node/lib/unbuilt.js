'use strict';
// What the contract names and this version of the runtime has no operation for. The names are
// here so that a program learns more than "is not a function"; the declarations leave them out.

const { refuse } = require('./errors.js');

const AGENT = [
  'disconnectIdleMcp', 'refreshMcpTools', 'replaceSessionAsync', 'serveAgentDir', 'sessionForAgent', 'sessionForAgentAsync', 'sessionForWorker', 'sessionForWorkerAsync',
];

const SESSION = [
  'sendWithAttachments', 'streamWithAttachments', 'resumeRun', 'cancelAndSettle',
  'subagentTask', 'subagentTasks', 'pendingSubagentTasks', 'cancelSubagentTask',
  'verificationReports', 'recordVerificationReports', 'verificationSummary', 'verificationSummaryText', 'verificationPresets', 'verifyCommands',
  'patchFile', 'git', 'gitCommand', 'webSearch', 'program', 'task', 'tasks', 'delegateTask', 'parallelTask',
  'addMcp', 'addMcpServerConfig', 'addMcpServer', 'removeMcp', 'removeMcpServer', 'mcps', 'mcpStatus',
  'addSkill', 'removeSkill', 'skillNames', 'registerAgentDir', 'registerWorkerAgent', 'registerWorkerAgents', 'registerDynamicWorkflowRuntime', 'unregisterDynamicTool',
  'registerHook', 'unregisterHook', 'hookCount', 'setBudgetGuard',
  'hasQueue', 'setLaneHandler', 'pendingExternalTasks', 'completeExternalTask', 'queueStats', 'queueMetrics', 'deadLetters',
  'hasMemory', 'rememberSuccess', 'rememberFailure', 'recallSimilar', 'recallByTags', 'memoryRecent', 'memoryStats',
  'getWorking', 'clearWorking', 'getShortTerm', 'clearShortTerm', 'parallel', 'parallelResumable', 'pipeline',
];

/** Gives a class methods that say they are not built. */
function unbuilt(Class, names) {
  for (const name of names) {
    const method = () => {
      throw refuse('UNSUPPORTED_OPERATION', `${Class.name.toLowerCase()}.${name}`, `${Class.name}.${name} is not part of this version: the runtime has no such operation yet`);
    };
    Object.defineProperty(Class.prototype, name, { value: method, configurable: true, writable: true });
  }
}

module.exports = { AGENT, SESSION, unbuilt };
