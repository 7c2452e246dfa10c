// A session of the TypeScript SDK's 1.x client, which knows the handshake era only.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { runSession } from "./session.mjs";

await runSession(async ({ target, onListChanged }) => {
  const client = new Client(
    { name: "e2e-typescript-v1", version: "1.0.0" },
    { listChanged: { tools: { autoRefresh: false, onChanged: onListChanged } } },
  );
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
