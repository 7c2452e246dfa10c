// Calls of a client that knows tasks: the TypeScript SDK's v2 client with its package for tasks, over HTTP.
// The only argument is JSON: {"url", "calls": [{"name", "arguments"}]}. Prints what became of each call.
//
// The SDK's own codecs know no tasks, so requests about them are posted here, as the package's guide has it.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";

const { url, calls } = JSON.parse(process.argv[2]);
const VERSION = "2026-07-28";
const clientInfo = { name: "e2e-typescript-tasks", version: "1.0.0" };
const capabilities = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
let lastId = 0;

async function rawDispatch(request, options = {}) {
  const { method, params } = request;
  const name = method === "tools/call" ? { "Mcp-Name": params.name } : {};
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": method,
      ...name,
      ...options.context?.headers,
    },
    body: JSON.stringify({ ...request, jsonrpc: "2.0", id: (lastId += 1) }),
    signal: options.signal,
  });
  const text = await answer.text();
  const streamed = text.split("\n").filter((line) => line.startsWith("data: {"));
  const message = JSON.parse(streamed.length ? streamed.at(-1).slice("data: ".length) : text);
  return message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result };
}

const client = new Client(clientInfo, { versionNegotiation: { mode: { pin: VERSION } }, capabilities });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const asked = [];
const session = createTaskSessionFromClient(client, {
  endpointId: "goat-mcp",
  rawDispatch,
  v2RequestFraming: { protocolVersion: VERSION, clientInfo, clientCapabilities: capabilities },
  onInputRequest: async (request, context) => {
    asked.push({ kind: request.kind, delivery: context.delivery });
    return { action: "accept", content: { confirm: true, name: "Alice" } };
  },
});
const outcomes = [];
for (const { name, arguments: given } of calls) {
  const execution = await session.callTool(name, given);
  const { outcome } = await execution.settle();
  const failed = outcome.status === "failed" ? { code: outcome.error.code, message: outcome.error.message } : undefined;
  outcomes.push({ kind: execution.kind, status: outcome.status, result: outcome.result, failed });
}
await session.close();
await client.close();
process.stdout.write(JSON.stringify({ outcomes, asked }));
