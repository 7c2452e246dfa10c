/**
 * The process that runs a resource's JavaScript or TypeScript handlers: the same protocol as `worker.py`.
 *
 * A line of JSON a message, both ways: requests come from descriptor 3, answers go to descriptor 4. Whatever a handler
 * prints goes to standard error, so that it cannot be taken for an answer. On Windows they are standard input and output.
 */

import { realpathSync, writeSync } from "node:fs";
import Module from "node:module";
import { Socket } from "node:net";
import { isAbsolute, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { format, types } from "node:util";

const HAS_OWN_PIPES = process.platform !== "win32"; // there a process inherits no descriptors but the first three
const REQUESTS = HAS_OWN_PIPES ? 3 : 0;
const ANSWERS = HAS_OWN_PIPES ? 4 : 1;
if (!HAS_OWN_PIPES) process.stdout.write = process.stderr.write.bind(process.stderr);
const MAX_LOG_LINES = 200;
const MAX_LINE_CHARS = 4000;
const REPORT_EVERY_MS = 500;
const MAX_ERROR_CHARS = 100_000;
const MAX_DEPTH = 500;
const TYPESCRIPT = /\.[cm]?ts$/;
const LEVELS = { trace: "debug", debug: "debug", log: "info", info: "info", warn: "warning", error: "error" };

const directory = process.cwd();
const running = new Map();
const asked = new Map();
let questions = 0;
let handlers = {};
let config = {};

function send(message) {
  write(JSON.stringify(message));
}

function write(line) {
  let data = Buffer.from(`${line}\n`);
  while (data.length > 0) {
    try {
      data = data.subarray(writeSync(ANSWERS, data));
    } catch (problem) {
      if (problem.code !== "EAGAIN") process.reallyExit(0); // the server is gone
    }
  }
}

/** What an exception says of itself. That is code of the handler's too, and may fail. */
function text(read) {
  try {
    const value = read();
    return typeof value === "string" ? value.slice(0, MAX_ERROR_CHARS) : "";
  } catch {
    return "";
  }
}

function errorOf(problem) {
  // One of another realm (`node:vm`) is no instance of our `Error`.
  if (!(problem instanceof Error) && !types.isNativeError(problem)) return { name: "Error", message: text(() => format("%s", problem)) };
  const error = { name: text(() => problem.name), message: text(() => problem.message) };
  for (const key of ["suggestion", "helpUrl"]) {
    const value = text(() => problem[key]);
    if (value) error[key] = value;
  }
  return error;
}

function show(problem) {
  try {
    console.error(problem);
  } catch {
    console.error("an error that cannot be shown");
  }
}

/** A mistake in a log call is reported in its line; it fails no call. */
function line(values) {
  try {
    return format(...values);
  } catch (problem) {
    return `this cannot be logged: ${errorOf(problem).name}`;
  }
}

/** A console whose lines go to the server's log. Lines over the limit are only counted. */
function loggerOf(call) {
  const lines = { true: 0, false: 0 };
  let dropped = 0;
  let reportedAt = 0;
  const report = () => {
    if (dropped === 0) return;
    reportedAt = Date.now();
    send({ id: call, dropped });
  };
  const logger = {};
  for (const [name, level] of Object.entries(LEVELS)) {
    logger[name] = (...values) => {
      const isGrave = level === "warning" || level === "error";
      lines[isGrave] += 1;
      if (lines[isGrave] <= MAX_LOG_LINES) {
        send({ id: call, log: [level, line(values).slice(0, MAX_LINE_CHARS)] });
        return;
      }
      dropped += 1;
      if (Date.now() - reportedAt >= REPORT_EVERY_MS) report();
    };
  }
  return { logger, report };
}

/** The agents, asked for through the server. */
function runtimeOf(call) {
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      questions += 1;
      asked.set(questions, { call, resolve, reject });
      send({ id: call, ask: questions, method, params });
    });
  return {
    request: (target, message = "", { timeoutMs, correlationId = "" } = {}) => {
      const timeout_s = timeoutMs === undefined ? null : timeoutMs / 1000;
      return ask("request", { target, message, timeout_s, correlation_id: correlationId });
    },
    send: (target, message) => ask("send", { target, message }),
    spawn: (type, { name = "", message = "" } = {}) => ask("spawn", { type, name, message }),
    list: () => ask("list", {}),
    catalog: () => ask("catalog", {}),
  };
}

function isDeep(value) {
  let level = [value];
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
    if (level.length === 0) return false;
  }
  return true;
}

function sendAnswer(id, name, value) {
  let why;
  let json = "null";
  try {
    if (value !== undefined) json = JSON.stringify(value);
    if (json === undefined) why = "JSON has nothing for it";
    else if (isDeep(value)) why = `more than ${MAX_DEPTH} lists and objects lie in one another`;
  } catch (problem) {
    why = problem.message;
  }
  if (why === undefined) {
    write(`{"id":${id},"value":${json}}`);
    return;
  }
  const message = `${name} gave back a ${typeof value} that is no JSON value: ${why}`;
  send({ id, error: { name: "NotJson", message } });
}

async function call(message) {
  const { id, export: name, input, ctx, has_runtime: hasRuntime } = message;
  const controller = new AbortController();
  running.set(id, controller);
  const { logger, report } = loggerOf(id);
  try {
    const handler = handlers[name];
    if (handler === undefined) {
      const known = Object.keys(handlers).sort().join(", ") || "none";
      throw new ReferenceError(`\`handlers\` has no '${name}'; it has ${known}`);
    }
    // Sent before anything of it runs: of a call without this, the server can say that it did nothing.
    send({ id, started: true });
    const context = {
      workdir: ctx.workdir,
      toolCallId: ctx.toolCallId,
      tool_call_id: ctx.toolCallId,
      message: ctx.message,
      config,
      logger,
      runtime: hasRuntime ? runtimeOf(id) : null,
      signal: controller.signal,
    };
    const value = await handler(context, input);
    report();
    sendAnswer(id, name, value);
  } catch (problem) {
    show(problem);
    report();
    send({ id, error: errorOf(problem) });
  } finally {
    running.delete(id);
    process.chdir(directory);
  }
}

/** What it waits for of agents fails, too: the server answers a cancelled call no more. */
function cancel(id) {
  const controller = running.get(id);
  controller?.abort();
  for (const [number, waiting] of asked) {
    if (waiting.call !== id) continue;
    asked.delete(number);
    waiting.reject(controller?.signal.reason);
  }
}

function take(message) {
  if (message.export !== undefined) {
    call(message);
  } else if (message.cancel !== undefined) {
    cancel(message.cancel);
  } else {
    const waiting = asked.get(message.reply);
    asked.delete(message.reply);
    if (message.error === undefined) waiting?.resolve(message.value);
    else waiting?.reject(Object.assign(new Error(message.error.message), { suggestion: message.error.suggestion }));
  }
}

/** The hook of `keepWithin`, which Node.js runs in a thread of its own. */
const RESOLVE = `
let within;
export function initialize(given) { within = given; }
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  if (!found.url.startsWith("file:") || found.url.startsWith(within)) return found;
  const error = new Error("Cannot find module '" + specifier + "' in the directory of the manifests");
  throw Object.assign(error, { code: "ERR_MODULE_NOT_FOUND" });
}`;

/**
 * A private copy imports nothing from around it: Node.js looks for packages in the folders above, where models may
 * be able to write.
 */
function keepWithin(copy) {
  const folder = realpathSync(copy) + sep;
  Module.register(`data:text/javascript,${encodeURIComponent(RESOLVE)}`, { data: pathToFileURL(folder).href });
  const resolve = Module._resolveFilename;
  Module._resolveFilename = (request, ...rest) => {
    const found = resolve.call(Module, request, ...rest);
    if (!isAbsolute(found) || found.startsWith(folder)) return found;
    const error = new Error(`Cannot find module '${request}' in the directory of the manifests`);
    throw Object.assign(error, { code: "MODULE_NOT_FOUND" });
  };
}

async function load(start) {
  const { file, within } = start.source;
  if (TYPESCRIPT.test(file) && !process.features.typescript) {
    const error = new Error(`Node.js ${process.versions.node} cannot run TypeScript`);
    throw Object.assign(error, { name: "TypeScriptUnsupported" });
  }
  config = start.config;
  if (within !== undefined) keepWithin(within);
  const module = await import(pathToFileURL(file).href);
  const found = module.handlers ?? module.default?.handlers;
  if (typeof found !== "object" || found === null) {
    throw new ReferenceError("there is no map `handlers` from export names to functions `async (ctx, input)`");
  }
  for (const [name, handler] of Object.entries(found)) {
    if (typeof handler !== "function") throw new TypeError(`handlers.${name} is a ${typeof handler}, not a function`);
  }
  handlers = Object.assign(Object.create(null), found);
}

async function begin(start) {
  try {
    await load(start);
  } catch (problem) {
    send({ broken: errorOf(problem) });
    process.removeAllListeners("uncaughtException");
    // Only Node.js knows the file and line of a syntax error. It shows them if the error ends the process.
    await new Promise(() => {
      setImmediate(() => {
        throw problem;
      });
    });
  }
  send({ ready: Object.keys(handlers).sort(), wrong_signatures: {} });
}

process.exit = (code = 0) => {
  throw new Error(`a handler called process.exit(${code})`); // it would end the other calls
};
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  // Files of Goondan are modules without a package.json that says so.
  if (warning.code !== "MODULE_TYPELESS_PACKAGE_JSON") show(warning);
});
process.on("unhandledRejection", show);
process.on("uncaughtException", (problem) => {
  show(problem);
  const { name, message } = errorOf(problem);
  console.error(`${name}: ${message}`); // the last line is what the caller is shown
  process.reallyExit(1);
});

let rest = "";
let isStarted = false;
let ready = Promise.resolve();
const requests = new Socket({ fd: REQUESTS, readable: true, writable: false });
requests.setEncoding("utf8");
requests.on("data", (data) => {
  const lines = (rest + data).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    const message = JSON.parse(line);
    if (isStarted) {
      ready.then(() => take(message));
    } else {
      isStarted = true;
      ready = begin(message);
    }
  }
});
requests.on("end", () => ready.then(() => process.reallyExit(0)));
