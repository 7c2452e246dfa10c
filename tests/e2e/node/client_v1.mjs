// A session of the TypeScript SDK's 1.x client, which knows the handshake era only.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { runSession } from "./session.mjs";

const REQUESTS = { "elicitation/create": ElicitRequestSchema, "sampling/createMessage": CreateMessageRequestSchema };

await runSession(async ({ target, name, onListChanged, capabilities, answers }) => {
  const client = new Client(
    { name: name || "e2e-typescript-v1", version: "1.0.0" },
    { capabilities, listChanged: { tools: { autoRefresh: false, onChanged: onListChanged } } },
  );
  for (const [method, answer] of Object.entries(answers)) {
    client.setRequestHandler(REQUESTS[method], answer);
  }
  client.takesResultSchema = true;
  const transport = target.url
    ? new StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers } })
    : new StdioClientTransport({ ...target, stderr: "inherit" });
  let negotiated = null;
  const setVersion = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    negotiated = version;
    setVersion?.(version);
  };
  await client.connect(transport);
  return { client, protocolVersion: () => negotiated };
});
