'use strict';
// Tools that this program calls itself, without a model.

const { refuse } = require('./errors.js');
const { ExtensionOwner } = require('./extensions.js');
const { ids, optionsOf, signalOf, texts } = require('./given.js');
const { ToolResult } = require('./results.js');
const { camel } = require('./wire.js');

const OP = 'session.tool';

/** The part of a session that runs tools for this program. */
class DirectTools extends ExtensionOwner {
  #call;

  constructor(native, handle, desk, sessionId, call) {
    super(native, handle, desk, sessionId);
    this.#call = call;
  }

  async tool(name, args, options) {
    ids(OP, { name });
    return new ToolResult(camel(await this.#call(OP, { name, args: args ?? {} }, signalOf(options, OP))));
  }

  async readFile(path, options) {
    texts(OP, { path });
    const { offset, limit, signal } = optionsOf('readFile', OP, options, ['offset', 'limit', 'signal']);
    return this.#output('read', { file_path: path, offset, limit }, { signal });
  }

  async writeFile(path, content, options) {
    texts(OP, { path, content });
    return this.tool('write', { file_path: path, content }, options);
  }

  async editFile(path, oldString, newString, replaceAll, options) {
    texts(OP, { path, oldString, newString });
    return this.tool('edit', { file_path: path, old_string: oldString, new_string: newString, replace_all: replaceAll || undefined }, options);
  }

  async ls(path, options) {
    if (path !== undefined && path !== null) texts(OP, { path });
    return this.tool('ls', { path: path ?? undefined }, options);
  }

  async glob(pattern, options) {
    texts(OP, { pattern });
    const paths = [];
    let cursor;
    do {
      const result = await this.#checked('glob', { pattern, limit: 1000, cursor }, options);
      const page = result.metadata?.page ?? {};
      paths.push(...result.output.split('\n').slice(0, page.returned_items ?? 0));
      cursor = page.next_cursor || undefined;
    } while (cursor !== undefined);
    return paths;
  }

  async grep(pattern, options) {
    texts(OP, { pattern });
    return this.#output('grep', { pattern }, options);
  }

  async bash(command, options) {
    texts(OP, { command });
    return (await this.tool('bash', { command }, options)).output;
  }

  async #checked(name, args, options) {
    const result = await this.tool(name, args, options);
    if (result.exitCode === 0) return result;
    throw refuse('TOOL_ERROR', `tool.${name}`, `Tool error: ${name}: ${result.output}`, { exit_code: result.exitCode, error_kind: result.errorKind });
  }

  async #output(name, args, options) {
    return (await this.#checked(name, args, options)).output;
  }
}

module.exports = { DirectTools };
